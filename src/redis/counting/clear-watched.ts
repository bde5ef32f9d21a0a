import type { RemoteRule } from '../../remote/remote-rule.js'
import type { ValuesRunner } from '../../values/values-runner.js'
import type { Command } from '../clients/connection.js'

/** Keys that are emptied together. */
const TOGETHER = 16

/** Empties all logs of a pattern on one server by transactions: see `optimistic` of the options. Deletes what is none. */
export async function clearWatched(
  send: (command: Command) => Promise<unknown>,
  pattern: string,
  runner: ValuesRunner,
  rules: readonly RemoteRule[],
  timeMs: number,
): Promise<void> {
  const clear = async (name: string): Promise<unknown> => {
    for (const rule of rules) {
      const call = { op: 'clear', timeMs, rules: [rule], limits: undefined, names: [name] } as const
      const [fault] = await runner.run({ ...call, costs: [0], more: [] })
      if (fault! >= 0) return
    }
    return send(['UNLINK', name])
  }
  let cursor = '0'
  do {
    const page = await send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000'])
    const [next, names] = page as [string, string[]]
    cursor = String(next)
    for (let at = 0; at < names.length; at += TOGETHER)
      await Promise.all(names.slice(at, at + TOGETHER).map(clear))
  } while (cursor !== '0')
}
