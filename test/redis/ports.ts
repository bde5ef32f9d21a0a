import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

export const HOST = '127.0.0.1'
/**
 * Below the ports that systems give to outgoing connections (from 32768 on Linux), so that no connection
 * takes the port of a server that is about to start again.
 */
const PORTS = [12_000, 32_000] as const
const ATTEMPTS = 100

/** A port on which no one listens. Another process may take it before the caller does. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(...PORTS)
    if (await isFree(port)) return port
  }
  throw new Error('no free port')
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, HOST)
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
