/** Exposes `gc` to the timed loops, which collect garbage first; the tests start without `--expose-gc`. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function exposeCollector(): void {
  setFlagsFromString('--expose-gc')
  globalThis.gc ??= runInNewContext('gc') // a new context has it
}
