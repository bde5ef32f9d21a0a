// One limiter as two: one whose batches TypeScript decides, and one whose batches the addon does.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Limiter } from 'millrace'
import { root } from '../package/root.js'

export type Side = 'typescript' | 'addon'

/** Makes a limiter whose batches, of whatever size, are decided on that side. */
export function onSide(side: Side, make: () => Limiter): Limiter {
  const before = process.env.MILLRACE_NATIVE
  process.env.MILLRACE_NATIVE = wishFor(side)
  try {
    return make()
  } finally {
    if (before === undefined) delete process.env.MILLRACE_NATIVE
    else process.env.MILLRACE_NATIVE = before
  }
}

/** What MILLRACE_NATIVE must be for that side. */
export function wishFor(side: Side): string {
  return side === 'addon' ? '1' : '0'
}

/**
 * Whether tests of the addon are left out: it has not been built, or its sources have changed since. Never where every
 * test has to run (MILLRACE_EVERY_TEST is set): there they fail.
 */
export function isLeftOut(): boolean {
  if (process.env.MILLRACE_EVERY_TEST) return false
  const builtMs = newestIn('prebuilds', '.node')
  if (builtMs >= Math.max(newestIn('native', '.h'), newestIn('native', '.cc'))) return false
  const state = builtMs === 0 ? 'has not been built' : 'is older than its sources'
  console.log(`left out: the addon ${state} (npm run build:native)`)
  return true
}

/** When a file of that ending was last written in the folder; 0 where there is none. */
function newestIn(folder: string, ending: string): number {
  const path = join(root, folder)
  if (!existsSync(path)) return 0
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' })
  const times = files
    .filter((file) => file.endsWith(ending) && !file.startsWith('test'))
    .map((file) => statSync(join(path, file)).mtimeMs)
  return Math.max(0, ...times)
}
