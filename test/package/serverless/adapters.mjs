// The statuses of four requests by each adapter, of which the last comes from another address.
import serverlessExpress from '@codegenie/serverless-express'
import awsLambdaFastify from '@fastify/aws-lambda'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { handle } from 'hono/aws-lambda'
import { rateLimit as forExpress } from 'millrace/express'
import { rateLimit as forFastify } from 'millrace/fastify'
import { rateLimit as forHono } from 'millrace/hono'
import serverlessHttp from 'serverless-http'
import { events } from './events.mjs'

const options = { limit: 2, window: '1m', trustProxy: 1 }
const onExpress = () => {
  const app = express()
  app.use(forExpress(options))
  return app.get('/', (_, response) => response.send('hello'))
}
const onFastify = () => {
  const app = Fastify()
  app.register(forFastify, options)
  app.get('/', () => 'hello')
  return app
}
const onHono = () => {
  const app = new Hono()
  app.use(forHono(options))
  return app.get('/', (context) => context.text('hello'))
}
const handlers = {
  'Express, serverless-http': () => serverlessHttp(onExpress()),
  'Express, @codegenie/serverless-express': () => serverlessExpress({ app: onExpress() }),
  'Fastify, @fastify/aws-lambda': () => awsLambdaFastify(onFastify()),
  async 'Fastify, serverless-http'() {
    const app = onFastify()
    await app.ready()
    return serverlessHttp(app)
  },
  'Hono, hono/aws-lambda': () => handle(onHono()),
}

const found = {}
for (const [name, make] of Object.entries(handlers)) {
  for (const [form, event] of Object.entries(events)) {
    const handler = await make()
    const statuses = []
    for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2']) {
      statuses.push((await handler(event(address), { awsRequestId: 'id' })).statusCode)
    }
    found[`${name}, ${form}`] = statuses
  }
}
console.log(JSON.stringify(found))
process.exit()
