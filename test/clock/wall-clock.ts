// A client for the server whose wall clock is set, and a judge of the server's replies.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { FakeTime } from './faketime.js'
import { KeyJudge } from './key-judge.js'

/** A window so long that the seconds of the test itself do not matter. */
export const OPTIONS = { limit: 20, window: '10m', granularity: '10s', maxKeys: 100 } as const
export const RULE = { limit: 20, windowMs: 600_000, parts: 60 }

const CLIENTS = 6
/** More requests than the limit before the clock is set, and more than the limit afterwards. */
const ASKED = 60

export type LimiterName = 'default' | 'wall'

export interface Reply {
  order: number
  allowed: boolean
  readingMs: number
  effectMs: number
  retryAfterMs: number
}

/** A server in a process of its own that uses `time`. */
export class WallClockServer {
  readonly #judges = new Map<string, KeyJudge>()
  readonly #time: FakeTime
  readonly #port: number
  readonly #child: ReturnType<typeof fork>

  private constructor(time: FakeTime, child: ReturnType<typeof fork>, port: number) {
    this.#time = time
    this.#child = child
    this.#port = port
  }

  static async start(time: FakeTime): Promise<WallClockServer> {
    const file = fileURLToPath(new URL('./wall-clock-server.js', import.meta.url))
    const child = fork(file, [], { env: { ...process.env, ...time.env }, execArgv: [] })
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended: ${code}`)))
    ended.catch(() => {}) // after the start nobody awaits it: `stop` ends the process
    const [port] = await Promise.race([once(child, 'message'), ended])
    return new WallClockServer(time, child, port as number)
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill() // this process, by its id
    await exited
  }

  /**
   * Sends requests as several concurrent clients, and sets the clock in the middle. Judges every reply.
   * Returns the replies in the order of their decisions.
   */
  async volley(limiter: LimiterName, key: string, offsetSeconds?: number): Promise<Reply[]> {
    const replies: Reply[] = []
    const client = async () => {
      for (let i = 0; i < ASKED / CLIENTS; i++) {
        replies.push(await this.#ask(`/${limiter}/${key}`))
        if (replies.length === ASKED / 2 && offsetSeconds !== undefined) this.#time.set(offsetSeconds)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    replies.sort((a, b) => a.order - b.order)
    for (const { readingMs, allowed, effectMs } of replies) {
      this.#judge(`${limiter}/${key}`).judgeEffect(readingMs, 1, allowed, effectMs)
    }
    return replies
  }

  #judge(name: string): KeyJudge {
    const judge = this.#judges.get(name) ?? new KeyJudge(RULE)
    this.#judges.set(name, judge)
    return judge
  }

  #ask(path: string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      // A connection for each request: the server could close an idle connection just as the next request is
      // sent.
      const request = get({ host: '127.0.0.1', port: this.#port, path, agent: false }, (response) => {
        let text = ''
        response.on('data', (chunk) => (text += chunk))
        response.on('end', () => resolve(JSON.parse(text) as Reply))
      })
      request.on('error', reject)
    })
  }
}
