// A process of a test: it watches a store on Redis, and sends what it is told to its parent. It ends by itself.
import { Redis } from 'ioredis'
import { redisConfig } from 'millrace/config/redis'
import { HOST } from '../redis/ports.js'

const [port, prefix] = process.argv.slice(2)
const client = new Redis(Number(port), HOST)
const store = redisConfig({ client, prefix: prefix! })

store.watch(async (change) => {
  const atMs = performance.timeOrigin + performance.now()
  const keys = change.keys ?? []
  const policies = await Promise.all(keys.map((key) => store.get(key)))
  if (process.connected) process.send!({ keys, policies, atMs }) // else a watch that goes on after the end
})

process.on('message', (message: { put: string } | 'end') => {
  if (message === 'end') {
    // The watch goes on. It must not keep the process alive.
    process.disconnect()
    client.disconnect()
  } else void store.put(message.put, { limit: 7, window: '1m' })
})
