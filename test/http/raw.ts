import { once } from 'node:events'
import { connect } from 'node:net'

/** A response of HTTP/1.1 as it was on the wire. */
export interface RawResponse {
  readonly status: number
  /** Names and values in their order. Names are in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The body; one in chunks is not decoded. */
  readonly body: string
  header(name: string): string | undefined
}

/**
 * Sends a request that no client would send: the bytes of a head, each character one byte. The server is asked
 * to close the connection after its response.
 */
export async function sendRaw(url: string, head: readonly string[], body = ''): Promise<RawResponse> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.setEncoding('latin1')
  let text = ''
  socket.on('data', (part: string) => {
    text += part
  })
  const lines = [...head, 'Connection: close', '', body]
  socket.write(Buffer.from(lines.join('\r\n'), 'latin1'))
  await once(socket, 'close')
  return parse(text)
}

function parse(text: string): RawResponse {
  const end = text.indexOf('\r\n\r\n')
  const [first = '', ...lines] = text.slice(0, end).split('\r\n')
  const found = /^HTTP\/1\.1 (\d{3}) [ -~]*$/.exec(first)
  if (end < 0 || found === null) throw new Error(`not a response: ${JSON.stringify(text.slice(0, 200))}`)
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    if (colon < 1) throw new Error(`not a header: ${JSON.stringify(line)}`)
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  return {
    status: Number(found[1]),
    headers,
    body: text.slice(end + 4),
    header: (name) => headers.find(([own]) => own === name)?.[1],
  }
}
