// Scripts of other packages, as their own code sends them at run time.
import { Ratelimit } from '@upstash/ratelimit'
import type { Options } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { type Load, type Scripted, shaOf } from './scripts.js'
import { encoded, type Reply } from './wire.js'

/** The Redis store of express-rate-limit, https://github.com/express-rate-limit/rate-limit-redis. */
export async function expressStore({ limit, windowMs }: Load): Promise<Scripted> {
  const sources = new Map<string, string>()
  let sent: string[] = []
  const store = new RedisStore({
    async sendCommand(...command) {
      sent = command
      if (command[0] !== 'SCRIPT') return [1, windowMs] // the reply to a first hit
      const source = command[2]!
      sources.set(shaOf(source), source)
      return shaOf(source)
    },
  })
  await store.init({ windowMs } as Options)
  await store.increment('user:0')
  const [, sha, , , ...args] = sent
  return {
    source: sources.get(sha!)!,
    commandOf: (key) => encoded(['EVALSHA', sha!, '1', store.prefixKey(key), ...args]),
    isAllowed: (reply) => (reply as number[])[0]! <= limit,
  }
}

/**
 * The sliding window of https://github.com/upstash/ratelimit-js. Each command holds the time of the caller's
 * clock, and two keys that are named after the current and the previous window.
 */
export class UpstashCommands implements Scripted {
  readonly source: string
  readonly isDated = true
  readonly #limiter: Ratelimit
  readonly #sent: { command?: Buffer }

  private constructor(source: string, limiter: Ratelimit, sent: { command?: Buffer }) {
    this.source = source
    this.#limiter = limiter
    this.#sent = sent
  }

  static async create({ limit, windowMs }: Load): Promise<UpstashCommands> {
    const window = Ratelimit.slidingWindow(limit, `${windowMs} ms`)
    const source = withoutFlags(await sourceOf(window))
    const sha = shaOf(source)
    const sent: { command?: Buffer } = {}
    const redis = {
      evalsha(_sha: string, keys: string[], args: unknown[]) {
        sent.command = encoded(['EVALSHA', sha, String(keys.length), ...keys, ...args.map(String)])
        return new Promise(() => {})
      },
    }
    return new UpstashCommands(source, limiterOn(redis, window), sent)
  }

  commandOf(key: string): Buffer {
    void this.#limiter.limit(key) // sends its command before it returns
    return this.#sent.command!
  }

  /** Charges a unit as a caller does whose clock is late. */
  chargeBefore(key: string, ms: number): Buffer {
    const { now } = Date // the package reads no other clock
    Date.now = () => now() - ms
    try {
      return this.commandOf(key)
    } finally {
      Date.now = now
    }
  }

  isAllowed(reply: Reply): boolean {
    return (reply as number[])[0]! >= 0
  }
}

type Window = ReturnType<typeof Ratelimit.slidingWindow>

function limiterOn(redis: object, limiter: Window): Ratelimit {
  // Without a timeout: it would leave a timer for each command that is never answered.
  return new Ratelimit({ redis: redis as never, limiter, timeout: 0, enableTelemetry: false })
}

/** The source that the package sends to a server that does not know the script. */
async function sourceOf(window: Window): Promise<string> {
  let source = ''
  const redis = {
    evalsha: async () => {
      throw new Error('NOSCRIPT')
    },
    eval: async (script: string) => {
      source = script
      return [1, 1] // units that remain, and the limit
    },
  }
  await limiterOn(redis, window).limit('user:0')
  return source
}

/** Removes the line `#!lua flags=allow-key-locking`: a flag of Upstash's servers that Redis refuses to load. */
const withoutFlags = (source: string): string => source.replace(/^#!lua.*/, '')
