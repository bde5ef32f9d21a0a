// Limits for Envoy: the files that say them, and the decisions of requests.
import { dirname } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { Settings } from '../options/table.js'
import { watchFiles } from '../reload.js'
import { countsPlace } from '../stores/addresses.js'
import { answerOf, type Outcome } from './answer.js'
import { checkRequest } from './check-request.js'
import { configFilesOf, readFiles } from './config/files.js'
import { type Config, readConfig } from './config/read.js'
import { ConfigError } from './config/yaml.js'
import type { RateLimitRequest, RateLimitResponse } from './contract.js'
import { type Decide, decideEach, decideTogether } from './decide.js'
import { EnvoyMetrics } from './metrics.js'
import { type Planned, planOf } from './plan.js'
import { type MakeLimiter, Shapes } from './shapes.js'

/** What one call on Redis decides for several keys. */
const ON_REDIS = ['sliding-window', 'fixed-window', 'token-bucket', 'leaky-bucket']

export class Envoy {
  readonly metrics = new EnvoyMetrics()
  readonly #settings: Settings
  readonly #shapes: Shapes
  readonly #decide: Decide
  #config: Config
  #isStale = false
  /** By path: what ends its watch. */
  readonly #watched = new Map<string, () => void>()

  /** @throws ConfigError for files that are wrong */
  constructor(settings: Settings, make: MakeLimiter) {
    this.#settings = settings
    const { kind } = countsPlace(settings.counts)
    this.#shapes = new Shapes(make, kind === 'redis' || kind === 'memcached')
    this.#decide = settings.envoyDecide === 'together' ? decideTogether() : decideEach
    this.#config = this.#read()
    this.metrics.loaded(true)
  }

  /** Whether the files are wrong by now, and the limits before are in force. */
  get isStale(): boolean {
    return this.#isStale
  }

  /** Resolves when the stores of all limits answer. */
  ready(): Promise<void> {
    return this.#shapes.ready()
  }

  /**
   * Answers at once if the counts are in this process.
   * @throws ServiceError for a request that is wrong, and if a store is away
   */
  decide(request: RateLimitRequest): RateLimitResponse | Promise<RateLimitResponse> {
    const { maxBatch, envoyDecide, envoyShadow, envoyHeaders } = this.#settings
    checkRequest(request, maxBatch)
    const plan = planOf(request, this.#config, this.#shapes, envoyDecide === 'together')
    const verdicts = this.#decide(plan.counted)
    const options = {
      isShadow: envoyShadow,
      headers: envoyHeaders,
      count: (planned: Planned, outcome: Outcome) => this.metrics.count(request.domain, planned, outcome),
    }
    return verdicts instanceof Promise
      ? verdicts.then((each) => answerOf(plan, each, options))
      : answerOf(plan, verdicts, options)
  }

  /** Reads the files again. If they are wrong, the limits stay as they were. */
  reload(log: FastifyBaseLogger): void {
    try {
      const config = this.#read()
      this.#config = config
      this.#shapes
        .keep(config.limits.map(({ counting }) => counting))
        .catch((error: Error) => log.error({ stack: error.stack }, 'envoyConfig: a limiter does not close'))
      this.#isStale = false
      log.info({ domains: config.domains.size, limits: config.limits.length }, 'envoyConfig: read again')
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      this.#isStale = true
      log.error(`envoyConfig: the limits stay as they were: ${error.message}`)
    }
    this.metrics.loaded(!this.#isStale)
  }

  /** Reads the files again when one of them changes, comes or goes. */
  watch(log: FastifyBaseLogger): void {
    const paths = this.#paths()
    for (const [path, end] of this.#watched) {
      if (paths.includes(path)) continue
      end()
      this.#watched.delete(path)
    }
    const changed = () => {
      this.reload(log)
      this.watch(log) // there may be other files now
    }
    for (const path of paths) {
      if (!this.#watched.has(path)) this.#watched.set(path, watchFiles([path], changed))
    }
  }

  async close(): Promise<void> {
    for (const end of this.#watched.values()) end()
    await this.#shapes.close()
  }

  #paths(): string[] {
    const { envoyConfig } = this.#settings
    try {
      return [...new Set([...envoyConfig, ...configFilesOf(envoyConfig)])]
    } catch {
      return [...envoyConfig, ...envoyConfig.map((path) => dirname(path))] // one of them is gone
    }
  }

  #read(): Config {
    const { envoyConfig, envoyDecide, counts } = this.#settings
    const config = readConfig(readFiles(envoyConfig))
    const isJoined = envoyDecide === 'together' && countsPlace(counts).kind === 'redis'
    for (const { counting, place } of config.limits) {
      if (isJoined && !ON_REDIS.includes(counting.algorithm))
        throw new ConfigError(
          `${place}: algorithm: expected one of ${ON_REDIS.join(', ')}, or envoyDecide: each, with counts in Redis, ` +
            `got ${JSON.stringify(counting.algorithm)}`,
        )
      this.#shapes.of(counting)
    }
    return config
  }
}
