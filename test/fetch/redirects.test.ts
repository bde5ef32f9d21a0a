// Redirects are followed as by fetch itself, and each hop is counted by the limit of its host.
import { createLimiter, type Limiter } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { settled } from '../limiter/support.js'
import { withServer } from './support.js'

/** What a server saw of a request. */
interface Seen {
  readonly line: string
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** A server that redirects `/STATUS?to=LOCATION`, and otherwise says what it saw. */
async function withRedirects(log: Seen[], use: (url: string) => Promise<void>): Promise<void> {
  await withServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { authorization, cookie, 'content-type': type, 'x-kept': kept } = request.headers
    log.push({
      line: `${request.method} ${request.url}`,
      body,
      headers: { authorization, cookie, type, kept },
    })
    const { pathname, searchParams } = new URL(request.url!, 'http://server')
    const status = Number(pathname.slice(1))
    if (status >= 300) {
      const to = searchParams.get('to')
      response.writeHead(status, to === null ? {} : { Location: to }).end('moved')
    } else response.end(`${request.method} ${request.url} ${body}`)
  }, use)
}

async function compare(url: string, log: Seen[], init?: RequestInit): Promise<void> {
  const limiter = createLimiter({ limit: 100, window: '1s' })
  const outcomes: unknown[] = []
  for (const call of [fetch, limitedFetch(fetch, { limiter })]) {
    log.length = 0
    const outcome = await settled(call(url, init))
    if (outcome.status === 'rejected') outcomes.push([outcome.reason.name, outcome.reason.message, [...log]])
    else {
      const { status, url: at, redirected, ok } = outcome.value
      outcomes.push([status, at, redirected, ok, await outcome.value.text(), [...log]])
    }
  }
  assert.equal(outcomes[1], outcomes[0], `${url} ${JSON.stringify(init)}`)
  await limiter.close()
}

const headers = { Authorization: 'secret', Cookie: 'a=b', 'Content-Type': 'text/plain', 'X-Kept': 'yes' }
const LOCATIONS = [
  '/end',
  'end?a=b',
  '//HOST/end',
  '/end#part',
  '/302?to=/307%3Fto=/end',
  '',
  '/caf%C3%A9',
  '/a b',
]

test('every redirect is followed as by fetch, with the same requests and the same response', async () => {
  const log: Seen[] = []
  await withRedirects(log, async (url) => {
    for (const status of [301, 302, 303, 307, 308])
      for (const method of ['GET', 'POST', 'PUT', 'HEAD'])
        await compare(`${url}/${status}?to=/end#mine`, log, {
          method,
          headers,
          ...(method.startsWith('P') && { body: 'data' }),
        })
    for (const to of LOCATIONS) {
      const location = to.replace('HOST', new URL(url).host)
      await compare(`${url}/302?to=${encodeURIComponent(location)}`, log, { headers })
    }
    await compare(`${url}/302`, log) // without a Location
    await compare(`${url}/304?to=/end`, log)
    for (const redirect of ['manual', 'error'] as const)
      await compare(`${url}/302?to=/end`, log, { redirect })
  })
})

test('what fetch rejects is rejected: too many redirects, other protocols, no URL, credentials, a stream', async () => {
  const log: Seen[] = []
  await withRedirects(log, async (url) => {
    let loop = '/end'
    for (let i = 0; i < 20; i++) loop = `/302?to=${encodeURIComponent(loop)}`
    await compare(`${url}${loop}`, log) // 20 redirects are followed
    await compare(`${url}/302?to=${encodeURIComponent(loop)}`, log)
    assert.is(log.length, 21)
    for (const to of ['data:,x', 'ftp://127.0.0.1/', 'http://me:secret@localhost:1/'])
      await compare(`${url}/302?to=${encodeURIComponent(to)}`, log)
    const limiter = createLimiter({ limit: 100, window: '1s' })
    const call = limitedFetch(fetch, { limiter })
    const body = new Blob(['data']).stream() as ReadableStream
    const stream = await settled(call(`${url}/307?to=/end`, { method: 'POST', body, duplex: 'half' }))
    assert.instance((stream as PromiseRejectedResult).reason, TypeError)
    const bad = await settled(call(`${url}/302?to=${encodeURIComponent('http://[')}`))
    assert.instance((bad as PromiseRejectedResult).reason, TypeError)
    await limiter.close()
  })
})

test('another origin is not sent the credentials', async () => {
  const [from, to]: [Seen[], Seen[]] = [[], []]
  await withRedirects(to, (other) =>
    withRedirects(from, async (url) => {
      await compare(`${url}/307?to=${encodeURIComponent(`${other}/end`)}`, to, {
        method: 'POST',
        headers,
        body: 'data',
      })
      assert.equal(to[0]!.headers, {
        authorization: undefined,
        cookie: undefined,
        type: 'text/plain',
        kept: 'yes',
      })
      assert.is(to[0]!.body, 'data')
      assert.is(from[0]!.headers.authorization, 'secret')
    }),
  )
})

test('each hop is charged to its own host', async () => {
  await withRedirects([], (other) =>
    withRedirects([], async (url) => {
      const limiter: Limiter = createLimiter({ limit: 100, window: '10m' })
      const target = encodeURIComponent(`${other}/302?to=/end`)
      const response = await limitedFetch(fetch, { limiter })(`${url}/302?to=${target}`)
      assert.is(await response.text(), 'GET /end ')
      assert.is(limiter.usage(new URL(url).host), 1)
      assert.is(limiter.usage(new URL(other).host), 2)
      await limiter.close()
    }),
  )
})

test('a Request keeps its method, headers, body and signal over a redirect', async () => {
  const log: Seen[] = []
  await withRedirects(log, async (url) => {
    const limiter = createLimiter({ limit: 100, window: '1s' })
    const call = limitedFetch(fetch, { limiter })
    await call(new Request(`${url}/308?to=/end`, { method: 'DELETE', headers }))
    assert.equal(
      log.map(({ line }) => line),
      ['DELETE /308?to=/end', 'DELETE /end'],
    )
    assert.is(log[1]!.headers.authorization, 'secret')
    await call(new Request(`${url}/303?to=/end`, { method: 'POST', headers, body: 'data' }))
    assert.equal([log[3]!.line, log[3]!.body, log[3]!.headers.type], ['GET /end', '', undefined])
    const kept = await call(new Request(`${url}/307?to=/end`), { method: 'POST', body: 'data' })
    assert.is(await kept.text(), 'POST /end data')
    await limiter.close()
  })
})

test.run()
