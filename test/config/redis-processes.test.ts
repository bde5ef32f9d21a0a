// Two processes see each other's changes. Prints within what time.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { redisConfig } from 'millrace/config/redis'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'

const CHANGES = 100

interface Seen {
  readonly keys: readonly string[]
  readonly policies: readonly { readonly key: string; readonly policy: object }[]
  readonly atMs: number
}

const nowMs = () => performance.timeOrigin + performance.now()

test('two processes see what the other one changes; a process that watches ends by itself', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, HOST)
  const store = redisConfig({ client, prefix: 'processes' })
  await store.put('first', { limit: 1, window: '1m' })
  const file = fileURLToPath(new URL('redis-process.js', import.meta.url))
  const child = fork(file, [String(server.port), 'processes'])
  try {
    const seen: Seen[] = []
    child.on('message', (message) => void seen.push(message as Seen))
    await poll(() => seen.length > 0, 'the subscription of the other process')

    const delays: number[] = []
    for (let i = 0; i < CHANGES; i++) {
      const key = `key ${i}`
      await store.put(key, { limit: i + 1, window: '1m' })
      const acknowledgedMs = nowMs()
      const told = () => seen.find(({ keys }) => keys.includes(key))
      while (told() === undefined) await once(child, 'message')
      delays.push(told()!.atMs - acknowledgedMs)
      assert.equal(told()!.policies[0]?.policy, { limit: i + 1, window: '1m' }, 'it reads the changed policy')
    }
    delays.sort((a, b) => a - b)
    const [median, longest] = [delays[CHANGES / 2]!, delays.at(-1)!].map((ms) => ms.toFixed(2))
    console.log(
      `another process is told ${median} ms after the acknowledgement (the longest of ${CHANGES}: ${longest} ms)`,
    )

    const own: (readonly string[] | undefined)[] = []
    store.watch(({ keys }) => void own.push(keys))
    await poll(() => own.length > 0, 'the subscription of this process')
    child.send({ put: 'of the child' })
    await poll(() => own.some((keys) => keys?.includes('of the child')), 'that this process is told')
    assert.equal((await store.get('of the child'))?.policy, { limit: 7, window: '1m' })

    child.send('end')
    const [code, signal] = await once(child, 'exit')
    assert.equal([code, signal], [0, null])
  } finally {
    child.kill()
    await store.close()
    client.disconnect()
    await server.stop()
  }
})

test.run()
