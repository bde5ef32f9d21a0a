import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { Client } from './driver.js'

const sessions = new Map<string, ClientHttp2Session>()

/** One session for each server, as browsers have. It ends with the server. */
function sessionOf(origin: string): ClientHttp2Session {
  const known = sessions.get(origin)
  if (known !== undefined) return known
  const session = connect(origin, {
    settings: { maxHeaderListSize: 1 << 20 },
    maxSendHeaderBlockLength: 1 << 20,
  })
  sessions.set(origin, session)
  session.on('error', () => {}) // its streams have errors of their own
  session.once('close', () => sessions.delete(origin))
  return session
}

function start(url: string, method: string, headers: Record<string, string>): ClientHttp2Stream {
  const { origin, pathname, search } = new URL(url)
  return sessionOf(origin).request({ ':method': method, ':path': pathname + search, ...headers })
}

/** HTTP/2 without TLS, which `fetch` does not have. */
export const http2Client: Client = {
  async fetch(url, { method, headers }) {
    const stream = start(url, method, headers).end()
    const [received] = (await once(stream, 'response')) as [Record<string, string>]
    const parts: Buffer[] = []
    for await (const part of stream) parts.push(part as Buffer)
    const { ':status': status, ...rest } = received // Object.entries leaves its symbols out
    const body = Buffer.concat(parts)
    return new Response(body.length > 0 ? body : null, {
      status: Number(status),
      headers: Object.entries(rest),
    })
  },
  open(url, headers) {
    const stream = start(url, 'GET', headers).end()
    stream.on('error', () => {}) // it is closed before its response
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    return () => {
      stream.close(constants.NGHTTP2_CANCEL)
      return closed
    }
  },
}
