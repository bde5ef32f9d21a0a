import type { Benchmark } from '../benchmark.js'

/**
 * Every case of `npm run bench` by name. A child loads only the case that it measures, so that the modules of
 * the others are not in its heap.
 */
export const CASES = {
  check: async () => (await import('./check.js')).check,
  handle: async () => (await import('./handle.js')).handle,
  figures: async () => (await import('./figures.js')).figures,
  compat: async () => (await import('./compat.js')).compat,
  algorithms: async () => (await import('./algorithms.js')).algorithms,
  rules: async () => (await import('./rules.js')).rules,
  single: async () => (await import('./single.js')).single,
  batch: async () => (await import('./batch.js')).batch,
  'large-batches': async () => (await import('./large-batches.js')).largeBatch,
  million: async () => (await import('./million.js')).million,
  memory: async () => (await import('./memory.js')).memory,
  pauses: async () => (await import('./pauses.js')).pauses,
  threads: async () => (await import('./threads.js')).threads,
  pool: async () => (await import('./pool.js')).pool,
  'pool-delay': async () => (await import('./pool-delay.js')).poolDelay,
  transport: async () => (await import('./transport.js')).transport,
  'cache-line': async () => (await import('./cache-line.js')).cacheLine,
  waits: async () => (await import('./waits.js')).waits,
  refusal: async () => (await import('./refusal.js')).refusal,
  headers: async () => (await import('./headers.js')).headers,
  accuracy: async () => (await import('./accuracy.js')).accuracy,
  edge: async () => (await import('./edge.js')).edge,
  day: async () => (await import('./day.js')).day,
  sums: async () => (await import('./sums.js')).sums,
  granularity: async () => (await import('./granularity.js')).granularity,
  clock: async () => (await import('./clock.js')).clock,
  hash: async () => (await import('./hash.js')).hash,
  require: async () => (await import('./require.js')).requiring,
  create: async () => (await import('./create.js')).create,
  stats: async () => (await import('./stats.js')).stats,
  shared: async () => (await import('./shared.js')).shared,
  words: async () => (await import('./words.js')).words,
  floor: async () => (await import('./floor.js')).floor,
} satisfies Record<string, () => Promise<Benchmark>>

/** The cases of `npm run bench:http`. */
export const HTTP_CASES = {
  http: async () => (await import('../http/http.js')).http,
  'in-situ': async () => (await import('../http/in-situ.js')).inSitu,
} satisfies Record<string, () => Promise<Benchmark>>

/** The cases of `npm run bench:instructions`. */
export const INSTRUCTIONS_CASES = {
  'instructions-node': async () =>
    (await import('../instructions/instructions.js')).instructionsOf('node:http'),
  'instructions-express': async () =>
    (await import('../instructions/instructions.js')).instructionsOf('Express'),
  'instructions-fastify': async () =>
    (await import('../instructions/instructions.js')).instructionsOf('Fastify'),
} satisfies Record<string, () => Promise<Benchmark>>

/** The cases of `npm run bench:redis`. */
export const REDIS_CASES = {
  'redis-server-time': async () => (await import('../redis/server-time.js')).redisServerTime,
  'redis-leases': async () => (await import('../redis/leases.js')).redisLeases,
  'redis-many-keys': async () => (await import('../redis/many-keys.js')).redisManyKeys,
  'redis-memory': async () => (await import('../redis/memory.js')).redisMemory,
  'redis-one-key': async () => (await import('../redis/one-key.js')).redisOneKey,
  'redis-in-flight': async () => (await import('../redis/in-flight.js')).redisInFlight,
  'redis-outage': async () => (await import('../redis/outage.js')).redisOutage,
  'redis-recovery': async () => (await import('../redis/recovery.js')).redisRecovery,
  'hand-built': async () => (await import('../redis/hand-built/hand-built.js')).handBuilt,
} satisfies Record<string, () => Promise<Benchmark>>

/** The cases of `npm run bench:config`. */
export const CONFIG_CASES = {
  'config-change': async () => (await import('../config/change.js')).configChange,
  'config-check': async () => (await import('../config/check.js')).configCheck,
  'lmdb-look-up': async () => (await import('../config/look-up.js')).lmdbLookUp,
  'lmdb-policies': async () => (await import('../config/policies.js')).lmdbPolicies,
} satisfies Record<string, () => Promise<Benchmark>>

/** The cases of `npm run bench:service`. */
export const SERVICE_CASES = {
  'service-single': async () => (await import('../service/single.js')).serviceSingle,
  'service-batching': async () => (await import('../service/batching.js')).serviceBatching,
  'service-envoy': async () => (await import('../service/envoy.js')).serviceEnvoy,
  'service-memory': async () => (await import('../service/memory.js')).serviceMemory,
} satisfies Record<string, () => Promise<Benchmark>>

/** {@link CASES}, and the cases that have their own command. */
export const ALL_CASES = {
  ...CASES,
  ...HTTP_CASES,
  ...INSTRUCTIONS_CASES,
  ...REDIS_CASES,
  ...CONFIG_CASES,
  ...SERVICE_CASES,
} satisfies Record<string, () => Promise<Benchmark>>

export type CaseName = keyof typeof ALL_CASES
