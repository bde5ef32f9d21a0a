import { readFileSync } from 'node:fs'
import { monotonicClock } from '../core/clock.js'
import { addonFor } from '../native/addon.js'

/** What a shared file must know of the machine that it is on, to tell time across its restarts. */
export interface Machine {
  /** Names this start of the machine, in four words; undefined where the system has no name for it. */
  bootId(): Int32Array | undefined
  /** Milliseconds of a clock that no one sets and all processes share; from when the machine started. */
  monotonicMs(): number
  /** Milliseconds since 1970, by a clock that may be set at any time. */
  wallMs(): number
  /**
   * By how many milliseconds `wallMs` may be wrong, as the kernel knows from what keeps it right (NTP); `Infinity` where nothing
   * does, or somebody has set it since.
   */
  wallErrorMs(): number
}

export const thisMachine: Machine = {
  bootId() {
    try {
      return bootIdOf(readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EMFILE' || code === 'ENFILE') throw error // it has a name, which may be read later
      return undefined // not Linux, or a /proc that shows little
    }
  },
  monotonicMs: monotonicClock.now,
  wallMs: Date.now,
  wallErrorMs: () => addonFor()?.files?.wallErrorMs() ?? Number.POSITIVE_INFINITY,
}

/** The 128 bits of a UUID; undefined for anything else. */
export function bootIdOf(uuid: string): Int32Array | undefined {
  const hex = uuid.trim().replaceAll('-', '')
  if (!/^[0-9a-f]{32}$/i.test(hex)) return undefined
  return Int32Array.from({ length: 4 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16))
}
