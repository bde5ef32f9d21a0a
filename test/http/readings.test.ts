// run: full
// A path that routers may read differently counts under the rules of all its readings.
import { createServer } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { createLimiter } from 'millrace'
import { type ExpressOptions, rateLimit as limitExpress } from 'millrace/express'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sendRaw } from './raw.js'
import { listen, shut } from './serve.js'

type Routes = NonNullable<ExpressOptions['routes']>
/** Sends a GET. Resolves with its status, the handler's name, and the decision that the handler saw. */
type Ask = (path: string) => Promise<{ status: number; body: string; policy: string | undefined }>

const answer = (name: string, decision: { rule: string } | null | undefined) => `${name}, ${decision?.rule}`

async function onExpress(routes: Routes, use: (ask: Ask) => Promise<void>): Promise<void> {
  const app = express()
  const limited = limitExpress({ key: () => 'all', routes })
  app.use(limited)
  app.get('/render/status', (request, response) => void response.end(answer('status', request.rateLimit)))
  app.get('/render/*rest', (request, response) => void response.end(answer('star', request.rateLimit)))
  const server = createServer(app)
  const url = await listen(server)
  try {
    await use(askAt(url))
  } finally {
    await shut(server)
    await limited.close()
  }
}

async function onFastify(routes: Routes, use: (ask: Ask) => Promise<void>): Promise<void> {
  const app = Fastify({ forceCloseConnections: true })
  app.register(limitFastify, { key: () => 'all', routes })
  app.after(() => {
    app.get('/render/status', ({ rateLimit }) => answer('status', rateLimit))
    app.get('/render/*', ({ rateLimit }) => answer('star', rateLimit))
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  try {
    await use(askAt(url))
  } finally {
    await app.close()
  }
}

const askAt =
  (url: string): Ask =>
  async (path) => {
    const { status, body, header } = await sendRaw(url, [`GET ${path} HTTP/1.1`, 'Host: host'])
    return { status, body, policy: header('ratelimit-policy') }
  }

const SERVERS = [
  ['Express', onExpress, '/render/statu%73', 'star'],
  ['Fastify', onFastify, '/render/statu%73', 'status'],
  ['Fastify', onFastify, '/render/statu%2573', 'star'],
] as const
const strict = { name: 'strict', limit: 2, window: '1h' }
const lax = { name: 'lax', limit: 100, window: '1h' }

for (const [name, serving, spelling, handler] of SERVERS) {
  for (const isStarStrict of [true, false]) {
    const routes = {
      '/render/*': isStarStrict ? strict : lax,
      '/render/status': isStarStrict ? lax : strict,
    }
    test(`${name}: ${spelling} gets no more than the stricter of ${isStarStrict ? '*' : 'status'} and the other`, () =>
      serving(routes, async (ask) => {
        for (let i = 0; i < 2; i++) {
          const { status, body } = await ask(spelling)
          assert.equal([status, body], [200, `${handler}, ${isStarStrict ? 'lax' : 'strict'}`])
        }
        assert.is((await ask(spelling)).status, 429)
        const plain = isStarStrict ? '/render/x' : '/render/status'
        assert.is((await ask(plain)).status, 429)
        assert.is((await ask(isStarStrict ? '/render/status' : '/render/x')).status, 200)
      }))
  }
}

test('limiters that answer later decide in turn, and the headers show all', async () => {
  const pool = { minThreads: 1, maxThreads: 1 }
  const limiter = createLimiter({ ...strict, maxKeys: 100, engine: 'pool', pool })
  try {
    await onExpress({ '/render/*': { limiter }, '/render/status': lax }, async (ask) => {
      const { status, policy } = await ask('/render/%73tatus')
      assert.equal([status, policy], [200, '"strict";q=2;w=3600, "lax";q=100;w=3600'])
      assert.is((await ask('/render/x')).status, 200)
      const refused = await ask('/render/%73tatus')
      assert.equal([refused.status, refused.policy], [429, '"strict";q=2;w=3600'])
    })
  } finally {
    await limiter.close()
  }
})

test('routes that share a limiter charge it once, and a route without a limit charges nothing', async () => {
  const limiter = createLimiter({ ...strict, maxKeys: 100 })
  try {
    await onExpress({ '/render/*': { limiter }, '/render/status': { limiter } }, async (ask) => {
      assert.is((await ask('/render/statu%73')).policy, '"strict";q=2;w=3600')
      assert.is(limiter.usage('all'), 1)
    })
    await onExpress({ '/render/*': false, '/render/status': { limiter } }, async (ask) => {
      for (const expected of [200, 429]) assert.is((await ask('/render/statu%73')).status, expected)
      assert.equal((await ask('/render/%78')).body, 'star, undefined')
    })
  } finally {
    await limiter.close()
  }
})

test.run()
