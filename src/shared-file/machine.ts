import { readFileSync } from 'node:fs'
import { monotonicClock } from '../core/clock.js'

/** What a shared file must know of the machine that it is on, to tell time across its restarts. */
export interface Machine {
  /** Names this start of the machine, in four words; undefined where the system has no name for it. */
  bootId(): Int32Array | undefined
  /** Milliseconds of a clock that no one sets and all processes share; from when the machine started. */
  monotonicMs(): number
  /** Milliseconds since 1970, by a clock that may be set at any time. */
  wallMs(): number
}

export const thisMachine: Machine = {
  bootId() {
    try {
      return bootIdOf(readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'))
    } catch {
      return undefined // not Linux, or a /proc that shows little
    }
  },
  monotonicMs: monotonicClock.now,
  wallMs: Date.now,
}

/** The 128 bits of a UUID; undefined for anything else. */
export function bootIdOf(uuid: string): Int32Array | undefined {
  const hex = uuid.trim().replaceAll('-', '')
  if (!/^[0-9a-f]{32}$/i.test(hex)) return undefined
  return Int32Array.from({ length: 4 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16))
}
