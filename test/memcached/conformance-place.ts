// The place `memcached` of the conformance suite.
import { createMemcachedLimiter, type MemcachedLimiterOptions } from 'millrace/memcached'
import type { Maker } from '../conformance/places.js'
import { remoteMaker } from '../redis/conformance-place.js'
import { startMemcached } from '../redis/servers.js'
import { clientOf } from './limiters.js'

let started: ReturnType<typeof startMemcached> | undefined

export async function memcachedMaker(): Promise<Maker> {
  started ??= startMemcached()
  const client = clientOf((await started).port)
  return remoteMaker((options) => createMemcachedLimiter({ ...(options as MemcachedLimiterOptions), client }))
}
