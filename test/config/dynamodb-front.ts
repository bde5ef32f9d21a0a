// An HTTP server in front of dynalite that passes requests on, and disturbs those that a test wants to fail.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { freePort, HOST } from '../redis/ports.js'

export interface Asked {
  /** Such as `'UpdateItem'`. */
  readonly action: string
  readonly body: string
  /** Passes a request on, this one or another, and returns the reply. */
  forward(body?: string): Promise<string>
  reply(status: number, body: string): void
  /** Closes the connection without a reply. */
  cut(): void
}

export interface Front {
  readonly port: number
  /** The requests that have arrived: their actions. */
  readonly actions: string[]
  /** Decides about each request. Undefined: all are passed on. */
  disturb: ((asked: Asked) => Promise<unknown> | unknown) | undefined
  stop(): Promise<void>
}

/** The error of DynamoDB for a table or an item that is read too often. */
export const THROTTLED = JSON.stringify({
  __type: 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException',
  message: 'The level of configured provisioned throughput for the table was exceeded',
})

export async function startFront(serverPort: number): Promise<Front> {
  const port = await freePort()
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy())
  })
  const front: Front = {
    port,
    actions: [],
    disturb: undefined,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await text(incoming)
    const action = String(incoming.headers['x-amz-target']).split('.')[1]!
    front.actions.push(action)
    const reply = (status: number, content: string) => {
      outgoing.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' })
      outgoing.end(content)
    }
    let status = 200
    const forward = async (content = body) => {
      const headers = { ...incoming.headers, 'content-length': Buffer.byteLength(content) }
      const passed = request({ port: serverPort, host: HOST, method: 'POST', headers })
      passed.end(content)
      const [response] = (await once(passed, 'response')) as [IncomingMessage]
      status = response.statusCode!
      return text(response)
    }
    const asked: Asked = { action, body, forward, reply, cut: () => outgoing.destroy() }
    if (front.disturb === undefined) {
      const content = await forward()
      reply(status, content)
    } else await front.disturb(asked)
  }
  server.listen(port, HOST)
  await once(server, 'listening')
  return front
}

/** A `disturb` that fails the first request of this action by `act`, and passes on all others. */
export function firstOf(action: string, act: (asked: Asked) => Promise<unknown> | unknown): Front['disturb'] {
  let isOver = false
  return async (asked) => {
    if (!isOver && asked.action === action) {
      isOver = true
      return act(asked)
    }
    const content = await asked.forward()
    asked.reply(content.includes('"__type"') ? 400 : 200, content)
  }
}
