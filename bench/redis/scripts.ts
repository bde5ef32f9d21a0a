// Limiters as scripts: their sources, and the commands that a client sends.
import { createHash } from 'node:crypto'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { checkRule } from '#millrace/core/rule.js'
import type { Channel } from '#millrace/redis/channel.js'
import { COUNTER_SCRIPT } from '#millrace/redis/counting/counter-script.js'
import { LOG_SCRIPT } from '#millrace/redis/counting/log-script.js'
import { argumentsOf } from '#millrace/redis/counting/script-arguments.js'
import { StrictEngine } from '#millrace/redis/packed/strict-engine.js'
import { strictScript } from '#millrace/redis/packed/strict-script.js'
import { checkStoredRules } from '#millrace/redis/stored-rules.js'
import { KeyNames } from '#millrace/remote/key-names.js'
import { checkRemoteRule, type RemoteRule } from '#millrace/remote/remote-rule.js'
import { Verdict } from '#millrace/remote/reply-codes.js'
import { encoded, type Reply } from './wire.js'

export interface Load {
  readonly limit: number
  readonly windowMs: number
  readonly granules: number
}

export interface Scripted {
  readonly source: string
  /** The command that decides a request of one unit. */
  commandOf(key: string): Buffer
  /** Commands hold the caller's time, so each request needs one of its own. */
  readonly isDated?: boolean
  isAllowed(reply: Reply): boolean
}

export const shaOf = (source: string): string => createHash('sha1').update(source).digest('hex')

function scripted(
  source: string,
  prefix: string,
  args: readonly string[],
  isAllowed: Scripted['isAllowed'],
): Scripted {
  const sha = shaOf(source)
  return {
    source,
    commandOf: (key) => encoded(['EVALSHA', sha, '1', `${prefix}:${key}`, ...args]),
    isAllowed,
  }
}

/** What Millrace sends, as its own engine writes it. */
export class MillraceCommands implements Scripted {
  readonly source: string
  readonly #engine: StrictEngine
  #last: Buffer | undefined

  constructor({ limit, windowMs, granules }: Load) {
    const rule = checkRemoteRule(checkRule({ limit, window: windowMs, granularity: windowMs / granules }))
    this.source = strictScript([rule], false)
    const sha = shaOf(this.source)
    const channel = {
      connection: { isCluster: true }, // each request is a call of its own
      call: (keys: readonly string[], args: readonly (string | Buffer)[]) => {
        this.#last = encoded(['EVALSHA', sha, String(keys.length), ...keys, ...args])
        return new Promise(() => {})
      },
    } as unknown as Channel
    const names = new KeyNames('bench', [rule.rule.name])
    const plan = { owner: this, rules: [rule], names, time: () => 0, maxKeys: 10_000 }
    this.#engine = new StrictEngine(plan, channel, async () => {})
  }

  commandOf(key: string): Buffer {
    return this.commandOfMany([key])
  }

  commandOfMany(keys: readonly string[]): Buffer {
    void this.#engine.ask(
      'check',
      keys.map((key) => ({ key, cost: 1 })),
    )
    return this.#last!
  }

  /** Charges a unit as of some time ago. */
  chargeBefore(key: string, ms: number): Buffer {
    void this.#engine.change('penalizeAgo', key, [1], [String(ms)])
    return this.#last!
  }

  isAllowed(reply: Reply): boolean {
    return (reply as number[])[0]! >= 0
  }
}

/** What Millrace sends for the algorithms that have scripts of their own. */
export class CountingCommands implements Scripted {
  readonly source: string
  readonly #rule: RemoteRule
  readonly #sha: string

  constructor(algorithm: 'sliding-log' | 'sliding-counter', { limit, windowMs }: Load) {
    const [rule] = checkStoredRules([checkRule({ limit, window: windowMs, algorithm })], () => '')
    this.#rule = rule!
    this.source = algorithm === 'sliding-log' ? LOG_SCRIPT : COUNTER_SCRIPT
    this.#sha = shaOf(this.source)
  }

  commandOf(key: string): Buffer {
    return this.#command('check', key, [])
  }

  /** Charges a unit as of some time ago. */
  chargeBefore(key: string, ms: number): Buffer {
    return this.#command('penalizeAgo', key, [String(ms)])
  }

  isAllowed(reply: Reply): boolean {
    return (reply as number[])[0] === Verdict.ADMITTED
  }

  #command(op: 'check' | 'penalizeAgo', key: string, more: readonly string[]): Buffer {
    const names = new KeyNames('bench', [this.#rule.rule.name]).of(key)
    const call = { op, timeMs: 0, rules: [this.#rule], limits: undefined, names, costs: [1], more }
    return encoded(['EVALSHA', this.#sha, '1', ...names, ...argumentsOf(call)])
  }
}

/**
 * The generic cell rate algorithm: the time at which a full burst will be free again. It takes and answers what the
 * script of redis_rate does (https://github.com/go-redis/redis_rate): burst, rate, period and cost; what was charged,
 * what remains, and two times in seconds as text.
 */
const GCRA = `
local burst, rate, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local interval = period / rate
local time = redis.call('TIME')
local now = (tonumber(time[1]) - 1500000000) + tonumber(time[2]) / 1000000
local stored = redis.call('GET', KEYS[1])
local tat = math.max(stored and tonumber(stored) or now, now)
local new = tat + interval * cost
local remaining = (now - (new - interval * burst)) / interval
if remaining < 0 then
  return {0, 0, tostring(-remaining * interval), tostring(tat - now)}
end
local reset = new - now
if reset > 0 then redis.call('SET', KEYS[1], new, 'EX', math.ceil(reset)) end
return {cost, remaining, tostring(-1), tostring(reset)}
`

export function gcra({ limit, windowMs }: Load): Scripted {
  const args = [String(limit), String(limit), String(windowMs / 1_000), '1']
  return scripted(GCRA, 'gcra', args, (reply) => (reply as number[])[0] === 1)
}

/** The same algorithm with the least work: whole microseconds, few answers. */
const LEAST_GCRA = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local interval, burst = ARGV[1] + 0, ARGV[2] + 0
local tat = redis.call('GET', KEYS[1])
tat = tat and math.max(tat + 0, now) or now
local new = tat + interval
if new - now > burst then
  return {0, 0, math.ceil((new - now - burst) / 1000), math.ceil((tat - now) / 1000)}
end
local ms = math.ceil((new - now) / 1000)
redis.call('SET', KEYS[1], new, 'PX', ms)
return {1, math.floor((burst - (new - now)) / interval), 0, ms}
`

export function leastGcra({ limit, windowMs }: Load): Scripted {
  const burstUs = 1_000 * windowMs
  const args = [String(burstUs / limit), String(burstUs)]
  return scripted(LEAST_GCRA, 'least', args, (reply) => (reply as number[])[0] === 1)
}

/** The script of the package, with the arguments that it sends. */
export function flexible({ limit, windowMs }: Load): Scripted {
  const limiter = new RateLimiterRedis({ storeClient: {}, points: limit, duration: windowMs / 1_000 })
  const { _incrTtlLuaScript: source } = limiter as unknown as { _incrTtlLuaScript: string }
  const seconds = String(windowMs / 1_000)
  const args = ['1', seconds, String(limit), seconds]
  return scripted(source, 'rlflx', args, (reply) => Number((reply as number[])[0]) <= limit)
}

/** What any script costs that asks for the time. */
export function timeOnly(): Scripted {
  return scripted(`return redis.call('TIME')`, 'time', [], (reply) => (reply as string[]).length === 2)
}
