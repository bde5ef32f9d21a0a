import { once } from 'node:events'
import { connect } from 'node:net'
import { BODY, KEY_HEADER } from '../http/handlers.js'

const KEYS = 2_000
const HOST = '127.0.0.1'

/**
 * Sends so many requests one after the other on one connection, with keys in a mixed order. So each turn of the server's
 * event loop has one request, however fast this machine is. @throws Error for an answer other than 200
 */
export async function sendRequests(port: number, count: number, keys = KEYS): Promise<void> {
  const socket = connect(port, HOST)
  await once(socket, 'connect')
  let key = 0
  for (let sent = 0; sent < count; sent++) {
    key = (key + 1_103) % keys
    socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n${KEY_HEADER}: user:${10_000 + key}\r\n\r\n`)
    let answer = ''
    while (!isWhole(answer)) {
      const [bytes] = await once(socket, 'data')
      answer += (bytes as Buffer).toString('latin1')
    }
    if (!answer.startsWith('HTTP/1.1 200 '))
      throw new Error(`the server answered: ${answer.split('\r\n')[0]}`)
  }
  socket.destroy()
}

/** Whether an answer has arrived, by its length or in chunks. */
const isWhole = (answer: string): boolean => answer.endsWith(BODY) || answer.endsWith(`${BODY}\r\n0\r\n\r\n`)
