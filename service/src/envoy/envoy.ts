// Limits for Envoy: the files that say them, and the decisions of requests.
import type { FastifyBaseLogger } from 'fastify'
import type { Settings } from '../options/table.js'
import { countsPlace } from '../stores/addresses.js'
import { answerOf, type Outcome } from './answer.js'
import { checkRequest } from './check-request.js'
import { readFiles, signatureOf } from './config/files.js'
import { type Config, readConfig } from './config/read.js'
import { ConfigError } from './config/yaml.js'
import type { RateLimitRequest, RateLimitResponse } from './contract.js'
import { type Decide, decideEach, decideTogether } from './decide.js'
import { EnvoyMetrics } from './metrics.js'
import { type Planned, planOf } from './plan.js'
import { type MakeLimiter, Shapes } from './shapes.js'

/** How often the files are looked at. */
const LOOK_MS = 1_000
/** What one call on Redis decides for several keys. */
const ON_REDIS = ['sliding-window', 'fixed-window', 'token-bucket', 'leaky-bucket']

export class Envoy {
  readonly metrics = new EnvoyMetrics()
  readonly #settings: Settings
  readonly #shapes: Shapes
  readonly #decide: Decide
  #config: Config
  #isStale = false
  /** Of the files, before they were read last: what changes meanwhile is read again. */
  #signature = ''
  #timer: NodeJS.Timeout | undefined

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
    const look = () => {
      if (signatureOf(this.#settings.envoyConfig) !== this.#signature) this.reload(log)
    }
    this.#timer = setInterval(look, LOOK_MS).unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#shapes.close()
  }

  #read(): Config {
    const { envoyConfig, envoyDecide, counts } = this.#settings
    this.#signature = signatureOf(envoyConfig)
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
