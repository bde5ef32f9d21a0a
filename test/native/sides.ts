// Chooses whether TypeScript or the addon decides for a limiter.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Limiter } from 'millrace'
import { root } from '../package/root.js'

export type Side = 'typescript' | 'addon'

/** Makes a limiter whose batches of any size are decided on that side. */
export function onSide(side: Side, make: () => Limiter): Limiter {
  return sideOf(side, make)
}

/** The same of anything that chooses its side when it is made. */
export function sideOf<T>(side: Side, make: () => T): T {
  const before = process.env.MILLRACE_NATIVE
  process.env.MILLRACE_NATIVE = wishFor(side)
  try {
    return make()
  } finally {
    if (before === undefined) delete process.env.MILLRACE_NATIVE
    else process.env.MILLRACE_NATIVE = before
  }
}

/** The value of MILLRACE_NATIVE for that side. */
export function wishFor(side: Side): string {
  return side === 'addon' ? '1' : '0'
}

/**
 * Whether to skip the tests of the addon, because it has not been built or its sources have changed since.
 * Never if MILLRACE_EVERY_TEST is set: then they fail.
 */
export function isLeftOut(): boolean {
  if (process.env.MILLRACE_EVERY_TEST) return false
  const builtMs = newestIn('prebuilds', '.node')
  if (builtMs >= Math.max(newestIn('native', '.h'), newestIn('native', '.cc'))) return false
  const state = builtMs === 0 ? 'has not been built' : 'is older than its sources'
  console.log(`left out: the addon ${state} (npm run build:native)`)
  return true
}

/** The time of the last write to a file with that ending, in milliseconds. 0 if there is no such file. */
function newestIn(folder: string, ending: string): number {
  const path = join(root, folder)
  if (!existsSync(path)) return 0
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' })
  const times = files
    .filter((file) => file.endsWith(ending) && !file.startsWith('test'))
    .map((file) => statSync(join(path, file)).mtimeMs)
  return Math.max(0, ...times)
}
