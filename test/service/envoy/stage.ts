// Engines that answer Envoy, their files, and a client of gRPC that knows the contract by `service/proto` alone.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { createLimiter, type ManualClock, manualClock } from 'millrace'
import type { ServeOptions } from 'millrace-service'
import { root } from '../../package/root.js'
import { type Engine, engine } from '../engine.js'
import { temporaryFolder } from '../folder.js'

const load = (name: string) =>
  loadSync(join(root, 'service/proto', name), {
    keepCase: true,
    enums: String,
    longs: Number,
    defaults: true,
  })
// biome-ignore lint/suspicious/noExplicitAny: made of the files of the contract
const RATE_LIMIT = grpc.loadPackageDefinition(load('ratelimit.proto')) as any
// biome-ignore lint/suspicious/noExplicitAny: the same
const HEALTH = grpc.loadPackageDefinition(load('health.proto')) as any

/** A descriptor by its entries: `['key', 'value', ...]`, or with more. */
export type Descriptor =
  | readonly string[]
  | { readonly entries: readonly string[]; readonly [more: string]: unknown }

export interface Status {
  readonly code: 'OK' | 'OVER_LIMIT'
  readonly current_limit: { requests_per_unit: number; unit: string; name: string } | null
  readonly limit_remaining: number
  readonly duration_until_reset: { seconds: number; nanos: number } | null
}

export interface Answer {
  readonly overall_code: 'OK' | 'OVER_LIMIT'
  readonly statuses: readonly Status[]
  readonly response_headers_to_add: readonly { key: string; value: string }[]
}

const isPlain = (descriptor: Descriptor): descriptor is readonly string[] => Array.isArray(descriptor)

export const requestOf = (domain: string, descriptors: readonly Descriptor[], more: object = {}) => ({
  domain,
  descriptors: descriptors.map((each) => {
    const { entries, ...others } = isPlain(each) ? { entries: each } : each
    const pairs = []
    for (let i = 0; i < entries.length; i += 2) pairs.push({ key: entries[i], value: entries[i + 1] })
    return { entries: pairs, ...others }
  }),
  ...more,
})

export interface Client {
  ask(request: object, options?: { deadline?: number; metadata?: grpc.Metadata }): Promise<Answer>
  check(service: string): Promise<string>
  watch(service: string): AsyncIterable<{ status: string }> & { cancel(): void }
  raw: grpc.Client
  close(): void
}

export function clientOf(
  address: string,
  credentials = grpc.credentials.createInsecure(),
  options = {},
): Client {
  const client = new RATE_LIMIT.envoy.service.ratelimit.v3.RateLimitService(address, credentials, options)
  const health = new HEALTH.grpc.health.v1.Health(address, credentials, options)
  const unary = <T>(
    of: grpc.Client,
    name: string,
    request: object,
    metadata: grpc.Metadata,
    deadline?: number,
  ) =>
    new Promise<T>((resolve, reject) => {
      const own = deadline === undefined ? {} : { deadline: Date.now() + deadline }
      // biome-ignore lint/suspicious/noExplicitAny: a method of the contract
      ;(of as any)[name](request, metadata, own, (error: Error | null, answer: T) =>
        error === null ? resolve(answer) : reject(error),
      )
    })
  return {
    ask: (request, { deadline, metadata } = {}) =>
      unary<Answer>(client, 'ShouldRateLimit', request, metadata ?? new grpc.Metadata(), deadline),
    async check(service) {
      return (await unary<{ status: string }>(health, 'Check', { service }, new grpc.Metadata())).status
    },
    watch: (service) => health.Watch({ service }),
    raw: client,
    close() {
      client.close()
      health.close()
    },
  }
}

export interface Stage {
  readonly engine: Engine
  readonly client: Client
  readonly clock: ManualClock
  /** Asks for descriptors of the domain `test`. */
  ask(...descriptors: Descriptor[]): Promise<Answer>
  /** The codes of the answer: overall, and of each descriptor. */
  codes(...descriptors: Descriptor[]): Promise<string>
  write(name: string, text: string): string
}

const shown = (code: string): string => (code === 'OVER_LIMIT' ? 'over' : 'ok')

/** An engine in memory with these limits, whose time is the test's. */
export async function withEnvoy(
  config: string | Readonly<Record<string, string>>,
  options: ServeOptions,
  act: (stage: Stage) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder()
  const write = (name: string, text: string): string => {
    const path = folder.path(name)
    writeFileSync(path, text)
    return path
  }
  const files = typeof config === 'string' ? { 'limits.yaml': config } : config
  const envoyConfig = Object.entries(files).map(([name, text]) => write(name, text))
  const clock = manualClock(1_000_000)
  const parts = {
    limiters: new Map([['default', createLimiter({ limit: 1, window: '1m', clock })]]),
    makeLimiter: (rule: object) => createLimiter({ ...rule, maxKeys: 1_000, clock } as never),
  }
  const isStored = options.counts !== undefined
  const served = await engine({ envoyConfig, grpcPort: 0, ...options }, isStored ? undefined : parts)
  const client = clientOf(served.grpcAddress!)
  const ask = (...descriptors: Descriptor[]) => client.ask(requestOf('test', descriptors))
  const codes = async (...descriptors: Descriptor[]) => {
    const { overall_code, statuses } = await ask(...descriptors)
    return [overall_code, ...statuses.map(({ code }) => code)].map(shown).join(' ')
  }
  try {
    await act({ engine: served, client, clock, ask, codes, write })
  } finally {
    client.close()
    await served.close()
    folder.remove()
  }
}
