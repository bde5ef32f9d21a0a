import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const callsOf = new WeakMap<Socket, Set<() => void>>()

/**
 * The connection of a response that is behind others: a client may send many requests before it reads. Such a
 * response has no socket yet, and does not hear when the connection closes.
 */
export function queuedOn({ socket, req, writableFinished }: ServerResponse): Socket | undefined {
  return socket === null && !writableFinished ? req?.socket : undefined
}

/**
 * Calls back when a connection closes. All calls have one listener.
 * @returns a function that takes the call back
 */
export function onHangUp(socket: Socket, call: () => void): () => void {
  const known = callsOf.get(socket)
  const calls = known ?? new Set()
  if (known === undefined) {
    callsOf.set(socket, calls)
    socket.once('close', () => {
      for (const each of calls) each()
    })
  }
  calls.add(call)
  return () => void calls.delete(call)
}
