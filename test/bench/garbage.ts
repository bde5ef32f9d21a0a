/** What is timed collects garbage first, as `--expose-gc` lets it; the tests are started without. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function exposeCollector(): void {
  setFlagsFromString('--expose-gc')
  globalThis.gc ??= runInNewContext('gc') // a context made from now on has it
}
