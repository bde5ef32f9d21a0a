import type { RequestListener } from 'node:http'
import { createLimiter, type Limiter, type ManualClock, manualClock } from 'millrace'
import type { OutgoingOptions } from 'millrace/fetch'
import { limitInterceptor } from 'millrace/undici'
import { Agent, type Dispatcher, request } from 'undici'
import { withServer } from './support.js'

/** What a test is given. */
export interface Setting {
  readonly url: string
  readonly host: string
  readonly clock: ManualClock
  readonly limiter: Limiter
  readonly log: string[]
  agent(options?: Partial<OutgoingOptions>): Dispatcher
}

/** An answer of the server. */
export interface Told {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A server that answers by the list, then with 200; and dispatchers with a limit of 2 a minute. */
export async function answering(
  list: readonly Told[],
  use: (setting: Setting) => Promise<void>,
  limit = 2,
): Promise<void> {
  const answers = [...list]
  const log: string[] = []
  const listener: RequestListener = async (incoming, response) => {
    let body = ''
    for await (const chunk of incoming) body += chunk
    log.push(`${incoming.method} ${incoming.url} ${body}`)
    const { status, headers, body: text = 'hello' } = answers.shift() ?? { status: 200 }
    response.writeHead(status, headers).end(text)
  }
  await withServer(listener, async (url) => {
    const clock = manualClock(5_000_000)
    const limiter = createLimiter({ limit, window: '1m', clock })
    const agents: Agent[] = []
    const agent = (options: Partial<OutgoingOptions> = {}) => {
      const own = new Agent()
      agents.push(own)
      return own.compose(limitInterceptor({ limiter, jitter: () => 0, ...options }))
    }
    await use({ url, host: new URL(url).host, clock, limiter, log, agent })
    await Promise.all(agents.map((each) => each.destroy()))
    await limiter.close()
  })
}

export const MINUTE_MS = 61_000

/** Sends a request, and reads its whole answer. */
export async function textOf(
  url: string,
  dispatcher: Dispatcher,
  options: object = {},
): Promise<[number, string]> {
  const { statusCode, body } = await request(url, { dispatcher, ...options })
  return [statusCode, await body.text()]
}
