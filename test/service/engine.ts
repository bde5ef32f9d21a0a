// Engines of tests, in this process.
import { type Parts, type Served, type ServeOptions, serve } from 'millrace-service'

/** An engine, and what asks it. */
export interface Engine extends Served {
  /** Asks by POST. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what it is
  readonly body: any
}

/** Starts an engine on a free port. */
export async function engine(options: ServeOptions, parts?: Parts): Promise<Engine> {
  const served = await serve({ port: 0, logLevel: 'silent', ...options }, parts)
  const ask = async (path: string, init: RequestInit): Promise<Answer> => {
    const answer = await fetch(`${served.url}${path}`, init)
    const text = await answer.text()
    const isJson = /json/.test(answer.headers.get('content-type') ?? '')
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text }
  }
  return {
    ...served,
    post: (path, body, headers = {}) =>
      ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    get: (path, headers = {}) => ask(path, { headers }),
  }
}
