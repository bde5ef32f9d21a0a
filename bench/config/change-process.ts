// Another process: it decides about one key all the time, and tells when the key gets another limit.
import { createLimiter } from 'millrace'
import { openStore, type Place } from './places.js'

const place: Place = JSON.parse(process.argv[2]!)
const store = openStore(place)
const ttl = place.kind === 'dynamodb' ? { ttl: '1s' as const } : {}
const limiter = createLimiter({ config: store, default: { limit: 1, window: '1m' }, configCache: ttl })

let limit = 0
function look(): void {
  const now = limiter.peek('user:1', 0).limit
  if (now !== limit) {
    limit = now
    process.send!({ limit, at: String(process.hrtime.bigint()) })
  }
  setImmediate(look)
}

process.on('disconnect', () => process.exit())
look()
