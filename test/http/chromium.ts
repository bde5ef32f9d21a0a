/** Debian's Chromium, without a window. */
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const NEEDED = 'a page in a browser needs chromium (on Debian or Ubuntu: apt-get install -y chromium)'
/** Milliseconds of the page's own clock, which stands still while a request is under way. */
const PAGE_MS = 10_000

function path(): string | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Whether tests in a browser are left out because there is none. If no test may be left out
 * (MILLRACE_EVERY_TEST is set), they fail instead.
 */
export function isLeftOut(): boolean {
  if (path() !== undefined || process.env.MILLRACE_EVERY_TEST) return false
  console.warn(`skipped: ${NEEDED}`)
  return true
}

/** Opens a page. Returns its HTML when its scripts have nothing more to do. */
export async function openPage(url: string): Promise<string> {
  const file = path()
  if (file === undefined) throw new Error(NEEDED)
  const profile = mkdtempSync(join(tmpdir(), 'millrace-chromium-'))
  const args = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    `--user-data-dir=${profile}`,
    `--virtual-time-budget=${PAGE_MS}`,
    '--dump-dom',
    url,
  ]
  const browser = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    let html = ''
    for await (const part of browser.stdout.setEncoding('utf8')) html += part
    return html
  } finally {
    browser.kill()
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}
