// A process that uses up a limit which it shares: see backend.test.ts.
import { createBackendLimiter } from 'millrace/backend'
import { lmdbValues } from './conformance-place.js'

const values = await lmdbValues(process.argv[2]!)
const limiter = createBackendLimiter({
  values,
  source: 'lmdb',
  prefix: 'processes',
  limit: 100,
  window: '1h',
  deadline: '1m',
})
await limiter.ready()
process.once('message', async () => {
  const decided = await Promise.all(Array.from({ length: 100 }, () => limiter.check('key')))
  process.send!(decided.filter(({ allowed }) => allowed).length)
  await limiter.close()
  await values.close()
  process.disconnect()
})
process.send!('ready')
