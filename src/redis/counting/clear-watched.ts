import type { RemoteRule } from '../../remote/remote-rule.js'
import type { ClearNames, Runner } from './counting-store.js'

/** Keys that are emptied together. */
const TOGETHER = 16

/** Empties all logs of a pattern by transactions: see `optimistic` of the options. Deletes what is none. */
export function clearWatched(runner: Runner, rules: readonly RemoteRule[], time: () => number): ClearNames {
  return async (send, pattern) => {
    const clear = async (name: string): Promise<unknown> => {
      for (const rule of rules) {
        const call = { op: 'clear', timeMs: time(), rules: [rule], limits: undefined, names: [name] } as const
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
}
