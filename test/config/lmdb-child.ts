// What the tests of the LMDB store do in a process of its own: `node lmdb-child.js ACTION PATH`.
import { setTimeout as pause } from 'node:timers/promises'
import { MillraceError } from 'millrace'
import { lmdbConfig, type Policy, type StoredPolicy } from 'millrace/config/lmdb'

const [action, path] = process.argv.slice(2) as [string, string]
const store = lmdbConfig({ path, pollMs: 5 })
const limitOf = (stored: StoredPolicy | undefined): number =>
  Number((stored?.policy as { limit?: number })?.limit ?? 0)

/** Adds 1 to the limit of a key, as often as another process has come in between. */
async function increment(key: string): Promise<void> {
  for (;;) {
    const before = await store.get(key)
    try {
      const policy = { limit: limitOf(before) + 1, window: '1m' } as const
      await store.put(key, policy, { ifVersion: before?.version ?? null })
      return
    } catch (error) {
      if ((error as MillraceError).code !== 'ERR_MILLRACE_CONFIG_CONFLICT') throw error
    }
  }
}

/** Writes until the disk is full, and reports what it was told. */
async function fill(): Promise<void> {
  const rules = Array.from({ length: 16 }, (_, i) => ({
    name: `${i}`.padEnd(60, 'x'),
    limit: 1,
    window: `${i + 1}m`,
  }))
  const policy = { rules } as Policy
  let acknowledged = 0
  const errors: unknown[] = []
  while (errors.length < 3) {
    try {
      await Promise.all(Array.from({ length: 50 }, (_, i) => store.put(`key:${acknowledged + i}`, policy)))
      acknowledged += 50
    } catch (error) {
      errors.push(error)
    }
  }
  const told = errors.map((error) => (error instanceof MillraceError ? error.code : String(error)))
  const read = (await store.get('key:0')) !== undefined
  const { message } = errors[0] as Error
  console.log(JSON.stringify({ acknowledged, told, read, message }))
  await store.close()
}

const ACTIONS: Record<string, () => Promise<unknown>> = {
  async increment() {
    for (let i = 0; i < 30; i++) await increment('counter')
    await store.close()
  },
  put: () => store.put('by:child', { limit: 7, window: '1m' }),
  fill,
  /** It watches, and ends without closing: nothing keeps it alive. */
  async watch() {
    store.watch(() => {})
    await pause(20)
    console.log('watched')
  },
}

process.on('unhandledRejection', (error) => {
  console.error('unhandled', error)
  process.exit(1)
})
await ACTIONS[action]!()
