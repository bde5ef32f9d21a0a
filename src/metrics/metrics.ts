import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import { loadPackage } from '../core/packages.js'
import { instrumentsFor, type OpenTelemetryMeter } from './opentelemetry.js'
import { metricsFor, type PrometheusRegistry } from './prometheus.js'
import { Source } from './source.js'
import { tellSpans } from './spans.js'
import type { Counting } from './stats.js'

export type { InstrumentOptions, OpenTelemetryMeter } from './opentelemetry.js'
export type { PrometheusRegistry } from './prometheus.js'
export type { Counting } from './stats.js'

/** By registry: what it reads, and how its metrics are registered. */
const registries = new WeakMap<PrometheusRegistry, { readonly source: Source; readonly begin: () => void }>()
const meters = new WeakMap<OpenTelemetryMeter, Source>()

/** Loads a peer dependency at its first use: who uses the other one need not have it. */
function peer<T>(name: string): T {
  return loadPackage(name, () => createRequire(import.meta.url)(name) as T)
}

/**
 * Registers the counts of limiters in a registry of prom-client, 15. They are read once at each scrape: a decision costs
 * nothing for it. The page `docs/reference/metrics.md` has the names of all metrics, their labels, and what they mean in
 * a cluster and in several threads.
 *
 * When a limiter is closed, its counters stay, and its name is free for another one. In a worker thread, the numbers are also added to those of the main
 * thread.
 * @param limiters by their names, which are the label `limiter`: limiters, groups, `rateLimit(...)`, `limitedFetch(...)`,
 * and other objects with a method `stats()` that returns the same
 * @param registry a registry of prom-client. Default: the default registry of the package `prom-client`
 * @returns a function that ends it, after the last numbers of a worker thread have been sent
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for what has no counts, and for a name that is registered already;
 * `ERR_MILLRACE_MISSING_PEER` if `prom-client` is not installed and no registry is given
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { register } from 'millrace/metrics'
 * import { register as registry } from 'prom-client'
 *
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * register({ api: limiter })
 * console.log(await registry.metrics()) // millrace_decisions_total{limiter="api",store="memory",outcome="admitted"} 0 ...
 * ```
 */
export function register(
  limiters: Readonly<Record<string, Counting>>,
  registry: PrometheusRegistry = peer<typeof import('prom-client')>('prom-client').register,
): () => Promise<void> {
  let known = registries.get(registry)
  if (known === undefined) {
    const source = new Source(true)
    known = { source, begin: metricsFor(registry, source) }
    registries.set(registry, known)
  }
  known.begin() // may throw: then nothing has been added
  return known.source.add(limiters)
}

/**
 * Makes the counts of limiters known to OpenTelemetry. They are read once when its reader collects values. The duration
 * of each call of a store is recorded when the call ends. Each refusal of this thread adds the event `rate_limited` to
 * the active span.
 *
 * When a limiter is closed, its counters stay, and its name is free for another one. A worker thread without a meter of its own adds its numbers to those of
 * the main thread.
 * @param limiters as for {@link register}
 * @param meter a meter of `@opentelemetry/api`. Default: the meter `millrace` of the global provider, so call this when
 * the SDK has been started
 * @returns a function that ends it, after the last numbers of a worker thread have been sent
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for what has no counts, and for a name that is observed already;
 * `ERR_MILLRACE_MISSING_PEER` if `@opentelemetry/api` is not installed
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { observe } from 'millrace/metrics'
 *
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * observe({ api: limiter }) // millrace.decisions, millrace.table.keys ...
 * ```
 */
export function observe(
  limiters: Readonly<Record<string, Counting>>,
  meter?: OpenTelemetryMeter,
): () => Promise<void> {
  const api = peer<typeof import('@opentelemetry/api')>('@opentelemetry/api')
  const own: OpenTelemetryMeter = meter ?? api.metrics.getMeter('millrace')
  let source = meters.get(own)
  if (source === undefined) {
    source = new Source(!isMainThread && own === api.createNoopMeter())
    instrumentsFor(own, source)
    meters.set(own, source)
  }
  const end = source.add(limiters)
  const endSpans = tellSpans(api)
  return async () => {
    endSpans()
    await end()
  }
}
