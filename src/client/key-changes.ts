import type { RemoteRule } from '../remote/remote-rule.js'
import type { Changing } from '../remote/remote-store.js'
import { readFlag, readNumber } from './wire.js'

/** A change of a key, as the service takes it. */
interface KeyChange {
  readonly path: string
  /** What it has beside the key. */
  fields(units: readonly number[], rules: readonly RemoteRule[]): object
  /** What it answers, for each rule the same. */
  read(json: unknown): number
  /** Whether it takes an `Idempotency-Key`. */
  readonly takesKey?: boolean
}

const flag = (name: string) => (json: unknown) => (readFlag(json, name) ? 1 : 0)
const nothing = () => ({})

const PENALIZE: KeyChange = {
  path: '/v1/penalize',
  fields: (units, rules) => ({ cost: Math.min(...quantities(units, rules)) }),
  read: flag('penalized'),
  takesKey: true,
}

/**
 * The requests that change a key. `giveBack` is none of them: it goes by the token of its decision. `penalizeAgo` reports
 * to the service what the client admitted by its own share during an outage.
 */
export const KEY_CHANGES: Readonly<Record<Exclude<Changing, 'giveBack'>, KeyChange>> = {
  penalize: PENALIZE,
  penalizeAgo: PENALIZE,
  refund: {
    path: '/v1/refund',
    fields: (units, rules) => ({ cost: Math.max(...quantities(units, rules)) }),
    read: (json) => readNumber(json, 'refunded'),
    takesKey: true,
  },
  block: {
    path: '/v1/block',
    fields: ([ms]) => ({ ms: ms === -1 ? 'forever' : ms }),
    read: flag('blocked'),
  },
  unblock: { path: '/v1/unblock', fields: nothing, read: flag('unblocked') },
  clear: { path: '/v1/clear', fields: nothing, read: () => 1 },
}

/**
 * The quantities of each rule. A penalty is rounded up to whole units, so the least of them is as many units of each
 * rule; a refund is rounded down, so the most of them is.
 */
function quantities(units: readonly number[], rules: readonly RemoteRule[]): number[] {
  const charged = units.flatMap((count, i) => (count > 0 ? [count * (rules[i]?.rule.unit ?? 1)] : []))
  return charged.length === 0 ? [0] : charged
}
