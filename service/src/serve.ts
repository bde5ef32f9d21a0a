import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { createLimiter } from 'millrace'
import { Charges } from './charges.js'
import type { Engine } from './engine.js'
import type { Envoy } from './envoy/envoy.js'
import type { GrpcServer } from './envoy/grpc-server.js'
import type { MakeLimiter } from './envoy/shapes.js'
import { createApp } from './http/app.js'
import { MemoryRecords } from './idempotency/memory-records.js'
import type { AnyLimiter, Limiters } from './limiters.js'
import { type Read, readValues } from './options/read.js'
import type { Settings } from './options/table.js'
import { checkTogether, warningsOf } from './options/together.js'
import { reloadTls } from './reload.js'
import { Callers } from './security/callers.js'
import { randomKey, Signer } from './security/signer.js'
import { shownUrl } from './stores/addresses.js'
import { type Counts, type Listeners, openCounts } from './stores/counts.js'
import { openPolicies } from './stores/policies.js'
import { PROBE } from './stores/redis-servers.js'
import { withinStart } from './stores/start.js'

/** Options of {@link serve}: those of the file of `millrace serve --config`. `docs/service.md` has all of them. */
export type ServeOptions = {
  readonly [Name in keyof Settings]?: Name extends 'limit'
    ? string | readonly string[]
    : Settings[Name] extends number
      ? number | string
      : Settings[Name]
}

/** A running engine. */
export interface Served {
  /** Where it answers, such as `http://127.0.0.1:8080`. */
  readonly url: string
  /** Where it answers Envoy, such as `127.0.0.1:8081`; undefined without `grpcPort`. */
  readonly grpcAddress: string | undefined
  /** What the options make likely to go wrong, a sentence each. */
  readonly warnings: readonly string[]
  /** Reads the secrets again: tokens, signing keys, passwords and the files of TLS; and those of `envoyConfig`. */
  reload(): void
  /** Ends it: it is not ready from now on, requests in flight are answered, and the counts stay in their store. */
  close(): Promise<void>
}

/** Ready-made parts, for programs that embed the service. */
export interface Parts {
  /** The limiters by name, the default one first, in place of those of the options. It is read at each request. */
  readonly limiters?: Limiters
  /** Makes the limiters of `envoyConfig`, beside `limiters`. @default createLimiter */
  readonly makeLimiter?: (rule: object, name: string) => AnyLimiter
}

/**
 * Starts an engine of the decision service.
 * @throws {Error} for options that are wrong, a store that refuses, or an address that is in use
 * @example
 * ```ts
 * import { serve } from 'millrace-service'
 *
 * const { url, close } = await serve({ limit: '100/1m', port: 0 })
 * ```
 */
export function serve(options: ServeOptions, parts: Parts = {}): Promise<Served> {
  return start(() => readValues(options as Readonly<Record<string, unknown>>), parts)
}

/** @param read reads the options; called again by `reload` */
export async function start(read: () => Read, parts: Parts = {}): Promise<Served> {
  const { settings } = read()
  checkTogether(settings, parts.limiters !== undefined)
  const { host, port, tokenLifetime, signingKeys, logLevel } = settings
  const { drainDelay, drainTimeout } = settings
  const policies =
    settings.policies === undefined ? undefined : openPolicies(settings.policies, settings.policiesPassword)
  let counts: Counts | undefined
  let log: FastifyBaseLogger | undefined
  let envoy: Envoy | undefined
  const listeners: Listeners = {
    onOutageChange: ({ policy, store, state, cause }) =>
      log?.warn({ policy, store, ...(cause !== undefined && { cause: String(cause) }) }, `counts: ${state}`),
    onRecordError: ({ message }) => log?.warn({ error: message }, 'an answer could not be forgotten'),
    onConfigError: ({ code }) => log?.warn({ code }, 'policies: a limiter goes on with what it knows'),
  }
  try {
    counts =
      parts.limiters === undefined
        ? openCounts(settings, policies?.store, listeners)
        : countsOf(parts as Parts & { limiters: Limiters }, settings)
    await withinStart(`counts: ${shownUrl(settings.counts)}`, counts.ready())
    if (policies !== undefined)
      await withinStart(`policies: ${shownUrl(settings.policies!)}`, policies.store.find(['millrace']))
    if (settings.envoyConfig.length > 0) {
      const loaded = await import('./envoy/envoy.js')
      envoy = new loaded.Envoy(settings, counts.make as MakeLimiter)
      await withinStart(`counts: ${shownUrl(settings.counts)}`, envoy.ready())
    }
    const callers = new Callers(settings)
    const signer = new Signer(signingKeys.length > 0 ? signingKeys : [randomKey()], tokenLifetime)
    const { limiters, once, probes, records, isShared } = counts
    const charges = new Charges(limiters, once, signer, isShared ? undefined : randomUUID())
    const engine: Engine = {
      settings,
      limiters,
      once,
      probes,
      charges,
      callers,
      policies,
      records,
      envoy,
      isDraining: false,
    }
    const app = await createApp(
      engine,
      logLevel === 'silent' ? false : { level: logLevel, stream: process.stderr },
    )
    log = app.log
    const warnings = warningsOf(settings, counts.isShared, policies?.kind)
    for (const warning of warnings) app.log.warn(warning)
    const url = await app.listen({ host, port }).catch(async (error: unknown) => {
      await app.close()
      throw error
    })
    let grpc: GrpcServer | undefined
    if (settings.grpcPort !== undefined) {
      const { openGrpcServer } = await import('./envoy/grpc-server.js')
      grpc = await openGrpcServer(engine, envoy!, app.log).catch(async (error: unknown) => {
        await app.close()
        throw error
      })
    }
    envoy?.watch(app.log)
    const opened = counts
    return {
      url,
      grpcAddress: grpc?.address,
      warnings,
      reload() {
        envoy?.reload(app.log)
        const next = read().settings
        checkTogether({ ...settings, tokens: next.tokens }, parts.limiters !== undefined)
        reloadTls(app.server, settings) // first: nothing is changed if a file is wrong
        if (grpc !== undefined) reloadTls(grpc.connections, settings)
        callers.set(next.tokens)
        if (next.signingKeys.length > 0) signer.set(next.signingKeys)
        opened.setPassword(next.countsPassword)
        policies?.setPassword(next.policiesPassword)
        app.log.info('secrets were read again')
      },
      async close() {
        engine.isDraining = true
        if (drainDelay > 0) await setTimeout(drainDelay)
        const cut = globalThis.setTimeout(() => app.server.closeAllConnections(), drainTimeout)
        await Promise.all([app.close(), grpc?.close(drainTimeout)])
        clearTimeout(cut)
        await envoy?.close()
        await opened.close()
        await policies?.close()
      },
    }
  } catch (error) {
    await envoy?.close()
    await counts?.close()
    await policies?.close()
    throw error
  }
}

/** Limiters that the caller has made, and closes. */
function countsOf(
  { limiters, makeLimiter }: Parts & { readonly limiters: Limiters },
  { tokenLifetime, idempotencyEntries, idempotencyLifetime, maxKeys }: Settings,
): Counts {
  const once = createLimiter({ limit: 1, window: `${tokenLifetime}ms`, onFull: 'deny' })
  return {
    limiters,
    once,
    probes: [PROBE],
    records: new MemoryRecords(idempotencyEntries, idempotencyLifetime),
    make:
      makeLimiter ?? ((rule) => createLimiter({ ...(rule as { limit: number; window: number }), maxKeys })),
    isShared: false,
    ready: async () => {},
    setPassword() {},
    close: () => once.close(),
  }
}
