// run: full
/** A page in a real browser reads the refusals of an API of another origin. */
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import Koa from 'koa'
import { rateLimit as limitExpress } from 'millrace/express'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { rateLimit as limitHono } from 'millrace/hono'
import { rateLimit as limitNode } from 'millrace/http'
import { rateLimit as limitKoa } from 'millrace/koa'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut, openPage } from './chromium.js'
import { listen, shut } from './serve.js'

const test = isLeftOut() ? always.skip : always
const ALLOW = 'Access-Control-Allow-Origin'

type Options = { limit: number; window: string; exposeHeaders: boolean }

/** An API that any page may call. It sets the header of CORS itself, and its limiter names the others. */
const APIS: Readonly<Record<string, (options: Options) => Promise<Parameters<typeof createServer>[1]>>> = {
  async 'node:http'(options) {
    const limited = limitNode(options)
    return (request, response) => {
      response.setHeader(ALLOW, '*')
      limited(request, response, () => response.end('hello'))
    }
  },
  async Express(options) {
    const app = express()
    app.use((_, response, next) => {
      response.set(ALLOW, '*')
      next()
    })
    app.use(limitExpress(options))
    app.get('/', (_, response) => void response.send('hello'))
    return app
  },
  async Fastify(options) {
    const app = Fastify()
    app.addHook('onRequest', (_, reply, done) => {
      reply.header(ALLOW, '*')
      done()
    })
    app.register(limitFastify, options)
    app.get('/', () => 'hello')
    await app.ready()
    return app.routing
  },
  async Koa(options) {
    const app = new Koa()
    app.use((context, next) => {
      context.set(ALLOW, '*')
      return next()
    })
    app.use(limitKoa(options))
    app.use((context) => {
      context.body = 'hello'
    })
    return app.callback()
  },
  async Hono(options) {
    const app = new Hono()
    app.use(cors({ origin: '*' }))
    app.use(limitHono(options))
    app.get('/', (context) => context.text('hello'))
    return getRequestListener(app.fetch)
  },
}

/** What the page has read of a response. */
interface Seen {
  readonly status: number
  readonly rateLimit: string | null
  readonly policy: string | null
  readonly retryAfter: string | null
  readonly body: string
}

/** Calls each API twice, one after the other, and writes what it sees into its body as JSON. */
const page = (urls: readonly string[]) => `<!doctype html><body><script type="module">
  const seen = []
  for (const url of ${JSON.stringify(urls)}) {
    for (let i = 0; i < 2; i++) {
      const response = await fetch(url, { cache: 'no-store' })
      const [rateLimit, policy, retryAfter] =
        ['RateLimit', 'RateLimit-Policy', 'Retry-After'].map((name) => response.headers.get(name))
      seen.push({ status: response.status, rateLimit, policy, retryAfter, body: await response.text() })
    }
  }
  document.body.textContent = encodeURIComponent(JSON.stringify(seen))
</script></body>`

/** What a page of another origin sees of each API. */
async function look(
  exposeHeaders: boolean,
): Promise<(readonly [name: string, admitted: Seen, refused: Seen])[]> {
  const servers = []
  for (const api of Object.values(APIS)) {
    servers.push(createServer(await api({ limit: 1, window: '1h', exposeHeaders })))
  }
  const urls: string[] = []
  for (const server of servers) urls.push(await listen(server))
  const site = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end(page(urls))
  })
  try {
    const html = await openPage(await listen(site))
    const [, text] = /<body>([^<]*)<\/body>/.exec(html) ?? []
    if (!text) throw new Error(`the page is not finished: ${html}`)
    const seen = JSON.parse(decodeURIComponent(text)) as Seen[]
    return Object.keys(APIS).map((name, i) => [name, seen[2 * i]!, seen[2 * i + 1]!])
  } finally {
    for (const server of [...servers, site]) await shut(server)
  }
}

test('a page of another origin reads the headers of a refusal, and its problem document', async () => {
  for (const [name, admitted, refused] of await look(true)) {
    assert.is(admitted.status, 200, name)
    assert.is(admitted.body, 'hello', name)
    assert.match(admitted.rateLimit!, /^"default";r=0;t=\d+$/, name)
    assert.is(refused.status, 429, name)
    assert.is(refused.policy, '"default";q=1;w=3600', name)
    assert.match(refused.retryAfter!, /^\d+$/, name)
    assert.is(refused.rateLimit, `"default";r=0;t=${refused.retryAfter}`, name)
    assert.match(JSON.parse(refused.body).type, /#quota-exceeded$/, name)
  }
})

test('without exposeHeaders it reads the status and the body alone', async () => {
  for (const [name, admitted, refused] of await look(false)) {
    assert.is(admitted.status, 200, name)
    assert.is(refused.status, 429, name)
    assert.equal([refused.rateLimit, refused.policy, refused.retryAfter], [null, null, null], name)
    assert.match(JSON.parse(refused.body).type, /#quota-exceeded$/, name)
  }
})

always.run()
