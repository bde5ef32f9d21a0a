// Clients that reset their connection at each step of a request.
import { connect, type Socket } from 'node:net'

/** Sends a part of a request, and calls `reset` when it is to end. */
type Step = (socket: Socket, head: string, body: string, reset: () => void) => void

/** Turns of the event loop after which a server may be anywhere in its work. */
const TURNS = [0, 1, 2, 5, 20]
const JSON_BODY = '{"user":"alice","password":"secret"}'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
const KEPT = 'Connection: keep-alive\r\n'

function afterTurns(turns: number, call: () => void): void {
  if (turns === 0) call()
  else setImmediate(() => afterTurns(turns - 1, call))
}

const after = (turns: number, part: (head: string, body: string) => string): Step => {
  return (socket, head, body, reset) => socket.write(part(head, body), () => afterTurns(turns, reset))
}
const STEPS: readonly Step[] = [
  (_, __, ___, reset) => reset(),
  after(1, (head) => head.slice(0, head.length / 2)),
  ...TURNS.flatMap((turns) => [
    after(turns, (head) => head),
    after(turns, (head, body) => head + body.slice(0, body.length / 2)),
    after(turns, (head, body) => head + body),
    after(turns, (head, body) => (head + body).repeat(3)),
  ]),
  (socket, head, body, reset) => {
    socket.write(head + body)
    socket.once('data', reset)
    afterTurns(1_000, reset) // a server without a listener of requests never answers
  },
]

/** Plays one step. Resolves when the connection has ended. */
function play(port: number, request: string, extra: string, step: Step): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      const body = request.startsWith('POST') ? JSON_BODY : ''
      const type = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
      const head = `${request} HTTP/1.1\r\nHost: 127.0.0.1\r\n${extra}${type}\r\n`
      step(socket, head, body, () => socket.resetAndDestroy())
    })
    socket.on('error', () => {}) // the server may reset it first
    socket.on('close', () => resolve())
  })
}

/**
 * Resets connections at each step of each of the requests, such as `GET /`, `rounds` times: so that the server admits
 * some and refuses the others. Rejects if it is gone afterwards.
 */
export async function resetAtEachStep(
  port: number,
  requests: readonly string[],
  rounds: number,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const request of requests)
      for (const extra of [KEPT, UPGRADE])
        await Promise.all(STEPS.map((step) => play(port, request, extra, step)))
  }
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.resetAndDestroy())
    socket.on('error', reject).on('close', () => resolve())
  })
}
