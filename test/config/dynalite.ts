// dynalite, which speaks the protocol of DynamoDB, in this process.
import { once } from 'node:events'
import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import { freePort, HOST } from '../redis/ports.js'

const dynalite: (options: object) => Server = createRequire(import.meta.url)('dynalite')

/** The options of a client that reaches it: nobody checks the credentials. */
export const clientOptions = (port: number) => ({
  region: 'eu-central-1',
  endpoint: `http://${HOST}:${port}`,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
})

export interface Dynalite {
  readonly port: number
  stop(): Promise<void>
}

/** Starts it, empty. */
export async function startDynalite(port?: number): Promise<Dynalite> {
  const server = dynalite({ createTableMs: 1 })
  const own = port ?? (await freePort())
  server.listen(own, HOST)
  await once(server, 'listening')
  return {
    port: own,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
