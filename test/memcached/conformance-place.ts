// The places `memcached` and `strict` of the conformance suite.
import { createMemcachedLimiter, type MemcachedLimiterOptions } from 'millrace/memcached'
import type { Maker } from '../conformance/places.js'
import { remoteMaker } from '../redis/conformance-place.js'
import { startMemcached } from '../redis/servers.js'
import { clientOf } from './limiters.js'

let started: ReturnType<typeof startMemcached> | undefined

export const memcachedMaker = (): Promise<Maker> => makerWith({})
export const strictMaker = (): Promise<Maker> => makerWith({ strict: true, clockSkew: 0 })

async function makerWith(own: Partial<MemcachedLimiterOptions>): Promise<Maker> {
  started ??= startMemcached()
  const client = clientOf((await started).port)
  return remoteMaker((options) =>
    createMemcachedLimiter({ ...(options as MemcachedLimiterOptions), ...own, client }),
  )
}
