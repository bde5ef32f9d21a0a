// One limiter as two: one whose batches TypeScript decides, and one whose batches the addon does.
import { existsSync } from 'node:fs'
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
 * Whether tests of the addon are left out: it has not been built (`npm run build:native`). Never where every test has to
 * run (MILLRACE_EVERY_TEST is set): there they fail.
 */
export function isLeftOut(): boolean {
  if (process.env.MILLRACE_EVERY_TEST || existsSync(join(root, 'prebuilds'))) return false
  console.log('the addon has not been built: npm run build:native')
  return true
}
