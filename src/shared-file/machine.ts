import { readFileSync, statSync } from 'node:fs'
import { monotonicClock } from '../core/clock.js'
import { addonFor } from '../native/addon.js'

/** The clocks of a machine, which a shared file needs to continue its time after a restart. */
export interface Machine {
  /** The system's name of this boot, in four words, or undefined if it has none. */
  bootId(): Int32Array | undefined
  /** Milliseconds since the machine started, by a clock that all processes share and nobody can set. */
  monotonicMs(): number
  /**
   * Milliseconds since the machine started, by the kernel's own record, down to `UPTIME_STEP_MS`. It is no
   * clock of this process, so it shows whether two processes have the same clock. It goes on while the machine sleeps.
   * Undefined if it can't be read.
   */
  uptimeMs(): number | undefined
  /** Milliseconds since 1970, by a clock that may be set at any time. */
  wallMs(): number
  /**
   * The largest error of `wallMs` in milliseconds, as the kernel knows it from NTP. `Infinity` if nothing
   * keeps the clock right, or if it has been set since.
   */
  wallErrorMs(): number
}

/** `uptimeMs` is rounded down to a multiple of this. */
export const UPTIME_STEP_MS = 10

export const thisMachine: Machine = {
  bootId() {
    try {
      return bootIdOf(readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EMFILE' || code === 'ENFILE') throw error // the boot has a name, which can be read later
      return undefined // not Linux, or /proc is restricted
    }
  },
  monotonicMs: () => monotonicClock.now(),
  uptimeMs() {
    try {
      // A container may have a file of its own there, which counts from the container's start.
      if (statSync('/proc/uptime').dev !== statSync('/proc').dev) return undefined
      const ms = 1_000 * Number.parseFloat(readFileSync('/proc/uptime', 'latin1'))
      return Number.isFinite(ms) ? ms : undefined
    } catch {
      return undefined // not Linux, or /proc is restricted
    }
  },
  wallMs: Date.now,
  wallErrorMs: () => addonFor()?.files?.wallErrorMs() ?? Number.POSITIVE_INFINITY,
}

/** The 128 bits of a UUID, or undefined for any other text. */
export function bootIdOf(uuid: string): Int32Array | undefined {
  const hex = uuid.trim().replaceAll('-', '')
  if (!/^[0-9a-f]{32}$/i.test(hex)) return undefined
  return Int32Array.from({ length: 4 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16))
}
