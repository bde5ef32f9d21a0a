// Opens what keeps the counts of an engine: its limiters, and what must be known once in the fleet.
import { Memcache } from 'memcache'
import { createLimiter, type Limiter, type MillraceError } from 'millrace'
import type { ConfigStore } from 'millrace/config/memory'
import { isSync } from 'millrace/internal'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter, type OutageChange } from 'millrace/redis'
import { BoundedRecords } from '../idempotency/bounded-records.js'
import { MemcachedRecords } from '../idempotency/memcached-records.js'
import { MemoryRecords } from '../idempotency/memory-records.js'
import type { Records } from '../idempotency/records.js'
import { type AnyLimiter, type Limiters, LoadingLimiter } from '../limiters.js'
import type { Settings } from '../options/table.js'
import { type CountsPlace, countsPlace } from './addresses.js'
import { DEFAULT, made, type Rules, rulesOf } from './limiters.js'
import { openRedis, PROBE } from './redis-servers.js'

/** What keeps the counts of an engine. */
export interface Counts {
  readonly limiters: Limiters
  /** Admits each identifier once in the life of a token. Engines that share counts share it. */
  readonly once: AnyLimiter
  /** Keys by which each server of the store is asked whether it answers. */
  readonly probes: readonly string[]
  /** Keeps the answers to an `Idempotency-Key`; undefined: the store can't. */
  readonly records: Records | undefined
  /** Whether other engines have the same counts. */
  readonly isShared: boolean
  /** Makes another limiter. Its maker closes it. */
  readonly make: (rules: Rules, name: string) => AnyLimiter
  /** Resolves when the store answers; rejects if it can't keep counts. */
  ready(): Promise<void>
  setPassword(password: string | undefined): void
  close(): Promise<void>
}

/** Told what goes wrong with stores while the engine runs. */
export interface Listeners {
  onOutageChange(change: OutageChange): void
  onConfigError(error: MillraceError): void
  /** A kept answer stays until its time is over. */
  onRecordError(error: Error): void
}

type Make = (rules: Rules, name: string, config?: ConfigStore) => AnyLimiter

/** Tokens that were used within the life of one, in memory. More are refused. */
const MOST_TOKENS = 100_000
const USED_TOKENS = 'used-tokens'
const CLOCK_SKEW_MS = 2 * 3_600_000

/** An engine whose clock is behind takes a token for so much longer. Engines of one machine have one clock. */
const clockSkewOf = (kind: CountsPlace['kind']): number =>
  kind === 'memory' || kind === 'file' ? 0 : CLOCK_SKEW_MS

/** @throws OptionError for options that are wrong; MillraceError for a store that refuses */
export function openCounts(
  settings: Settings,
  config: ConfigStore | undefined,
  listeners: Listeners,
): Counts {
  const { counts, tokenLifetime, idempotencyLifetime, idempotencyEntries, prefix, limit } = settings
  const place = countsPlace(counts)
  const inMemory = () => new MemoryRecords(idempotencyEntries, idempotencyLifetime)
  const inStore = () => {
    const records = opened.records?.(`${prefix}:answers:`, idempotencyLifetime)
    const { onRecordError } = listeners
    return records && new BoundedRecords(records, idempotencyEntries, idempotencyLifetime, onRecordError)
  }
  const opened = opener(settings, listeners)
  const limiters = new Map<string, AnyLimiter>()
  for (const [name, rules] of rulesOf(settings)) {
    const own = name === DEFAULT || limiters.size === 0 ? config : undefined
    limiters.set(
      name,
      made(name, limit.length > 0, () => opened.make(rules, name, own)),
    )
  }
  const once = opened.make({ limit: 1, window: `${tokenLifetime + clockSkewOf(place.kind)}ms` }, USED_TOKENS)
  return {
    limiters,
    once,
    make: opened.make,
    probes: opened.probes ?? [PROBE],
    isShared: place.kind !== 'memory',
    records: place.kind === 'memory' ? inMemory() : inStore(),
    ready: async () => {
      await opened.ready?.()
      await Promise.all([...limiters.values(), once].map((limiter) => limiter.ready()))
    },
    setPassword: (password) => opened.setPassword?.(password),
    async close() {
      for (const limiter of [...limiters.values(), once]) await limiter.close()
      opened.end?.()
    },
  }
}

interface Opener {
  readonly make: Make
  readonly probes?: readonly string[]
  readonly records?: (prefix: string, lifetimeMs: number) => Records
  readonly ready?: () => Promise<void>
  readonly setPassword?: (password: string | undefined) => void
  readonly end?: () => void
}

function opener(settings: Settings, { onOutageChange, onConfigError }: Listeners): Opener {
  const { counts, maxKeys, prefix, onOutage, nodes, deadline, strict } = settings
  const place = countsPlace(counts)
  const withPolicies = (rules: Rules, config: ConfigStore | undefined): object =>
    config === undefined ? rules : { config, default: rules, onConfigError }
  const isOnce = (name: string) => name === USED_TOKENS
  if (place.kind === 'memory' || place.kind === 'file') {
    const make: Make = (rules, name, config) => {
      const file = place.kind === 'file' ? { shared: { file: `${place.path}.${name}` } } : {}
      const size = isOnce(name) ? { maxKeys: MOST_TOKENS, onFull: 'deny' } : { maxKeys }
      const limiter: Limiter = createLimiter({ ...withPolicies(rules, config), ...size, ...file } as never)
      return config === undefined || isSync(config) ? limiter : new LoadingLimiter(limiter)
    }
    return { make }
  }
  const remote = (name: string) => ({
    prefix: `${prefix}:${name}`,
    deadline,
    maxKeys,
    onOutage: isOnce(name) ? 'closed' : onOutage,
    onOutageChange: isOnce(name) ? () => {} : onOutageChange,
    ...(nodes !== undefined && !isOnce(name) && { nodes }),
  })
  if (place.kind === 'redis') {
    const servers = openRedis(place.urls, settings)
    return {
      make: (rules, name, config) =>
        createRedisLimiter({ ...withPolicies(rules, config), ...remote(name), ...servers.options } as never),
      probes: servers.probes,
      records: (prefix, lifetimeMs) => servers.records(prefix, lifetimeMs),
      ready: () => servers.connected(),
      setPassword: (password) => servers.setPassword(password),
      end: () => servers.disconnect(),
    }
  }
  const client = new Memcache({ nodes: [...place.servers], timeout: deadline })
  return {
    make: (rules, name, config) =>
      createMemcachedLimiter({ ...withPolicies(rules, config), ...remote(name), strict, client } as never),
    records: (prefix, lifetimeMs) => new MemcachedRecords(client, prefix, lifetimeMs),
    ready: () => client.connect(),
    end: () => void client.disconnect(),
  }
}
