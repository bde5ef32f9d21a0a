import { createServer } from 'node:http'
import type { NextFunction, Request, Response } from 'express'
import express from 'express'
import express4 from 'express4'
import { groupLimit, rateLimit } from 'millrace/express'
import { type AnyOptions, decisionBody, type FrameworkDriver, isGroup, type Served } from './driver.js'
import { SERVER_OPTIONS, servedBy } from './serve.js'

type Kept = { rateLimit?: Parameters<typeof decisionBody>[0] }

type Limiter = ReturnType<typeof rateLimit | typeof groupLimit>

const limitBy = (options: AnyOptions): Limiter =>
  isGroup(options) ? groupLimit(options as never) : rateLimit(options)

async function served(app: ReturnType<typeof express>, limiters: readonly Limiter[]): Promise<Served> {
  const server = createServer(SERVER_OPTIONS, app)
  return servedBy(server, limiters)
}

const expressDriver = (name: string, create: typeof express): FrameworkDriver => ({
  name,
  async serve(...chain) {
    const app = create()
    const limiters = chain.map(limitBy)
    for (const limiter of limiters) app.use(limiter)
    app.get('/', (_, response) => void response.send('hello'))
    app.get('/decision', (request, response) => void response.end(decisionBody((request as Kept).rateLimit)))
    app.get('/status/:n', ({ params }, response) => void response.status(Number(params.n)).end())
    app.get('/hang', () => {})
    app.post('/login', (_, response) => void response.status(401).end())
    return served(app, limiters)
  },
  async serveRepeatedly(options) {
    const limiter = rateLimit(options)
    const app = create()
    const router = create.Router()
    app.use(limiter, router)
    router.use(limiter)
    router.get('/', limiter, (_, response) => void response.send('hello'))
    return served(app, [limiter])
  },
  header: (request, name) => (request as Request).get(name),
  statusOf: (response) => (response as Response).statusCode,
  teapot: () => ({
    handler(_: Request, response: Response, __: NextFunction, { rule }: { rule: string }) {
      response.status(418).type('text/plain').send(rule)
    },
  }),
})

export const express5Driver = expressDriver('Express 5', express)
export const express4Driver = expressDriver('Express 4', express4)
