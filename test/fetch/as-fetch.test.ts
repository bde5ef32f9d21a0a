// run: also-full
// limitedFetch against fetch itself: the same calls, and what a server gets and the caller sees of each. With every
// form of the arguments, on its own and over each kind of redirect, to the same origin and to another.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createLimiter, manualClock } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import {
  FormData as UndiciForm,
  Headers as UndiciHeaders,
  Request as UndiciRequest,
  fetch as undiciFetch,
} from 'undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { settled, until } from '../limiter/support.js'
import { sized } from '../size.js'
import { withServer } from './support.js'

type Fetch = typeof fetch
/** A call: the arguments are made for each function, as many of them can be read once only. */
type Call = (fetch: Fetch, url: string) => Promise<unknown>
type Init = RequestInit & Readonly<Record<string, unknown>>

const sha = (bits: number, text: string) =>
  `sha${bits}-${createHash(`sha${bits}`).update(text).digest('base64')}`
const post = (body: unknown, more: object = {}): Init => ({ method: 'POST', body, ...more }) as Init
const secret: [string, string] = ['Authorization', 'secret']

/** A stream of text. Its chunks are strings' bytes, in a stream that is not of bytes. */
const streamOf = (text: string) =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text))
      controller.close()
    },
  })

async function* generated(text: string) {
  yield new TextEncoder().encode(text)
}

function formOf(Form: typeof FormData): FormData {
  const form = new Form()
  form.append('a', 'b')
  form.append('file', new Blob(['data'], { type: 'text/x' }), 'name.txt')
  return form
}

/** An init whose members are inherited: getters of a class. */
class Inherited {
  get method() {
    return 'PUT'
  }
  get headers() {
    return { 'X-Kept': 'inherited' }
  }
  get body() {
    return 'data'
  }
}

const BODIES: Readonly<Record<string, () => Init>> = {
  'a string': () => post('data'),
  'an empty string': () => post(''),
  'a string that is no ASCII': () => post('dätä'),
  'a number': () => post(5),
  'an array': () => post([1, 2]),
  'an object with a text': () => post({ toString: () => 'text' }),
  'a String': () => post(new String('data')),
  'an ArrayBuffer': () => post(new TextEncoder().encode('data').buffer),
  'a Uint8Array': () => post(new TextEncoder().encode('a data').subarray(2)),
  'a DataView': () => post(new DataView(new TextEncoder().encode('a data').buffer, 2)),
  'a Buffer': () => post(Buffer.from('data')),
  'a Blob': () => post(new Blob(['data'], { type: 'text/x' })),
  'a File': () => post(new File(['data'], 'name')),
  'a form': () => post(formOf(FormData)),
  'search parameters': () => post(new URLSearchParams({ a: 'b c' })),
  'a stream': () => post(streamOf('data'), { duplex: 'half' }),
  'a stream of bytes': () => post(new Blob(['data']).stream(), { duplex: 'half' }),
  'a stream without duplex': () => post(streamOf('data')),
  'a generator': () => post(generated('data'), { duplex: 'half' }),
  'a stream of Node': () => post(Readable.from([Buffer.from('data')]), { duplex: 'half' }),
  null: () => post(null),
  undefined: () => post(undefined),
}

const INITS: Readonly<Record<string, () => Init | null>> = {
  nothing: () => ({}),
  null: () => null,
  'headers as an object': () => ({ headers: { Authorization: 'secret', Cookie: 'a=b', 'X-Kept': 'yes' } }),
  'headers as Headers': () => ({ headers: new Headers({ Authorization: 'secret', 'X-Kept': 'yes' }) }),
  'headers as pairs': () => ({ headers: [secret, ['X-Kept', '1'], ['x-kept', '2']] as [string, string][] }),
  'headers as a Map': () => ({ headers: new Map([secret]) as never }),
  'headers as an iterator': () => ({ headers: new Map([secret]).entries() as never }),
  'headers as a generator': () => ({
    headers: (function* () {
      yield secret
      yield new Set(['X-Kept', 'yes'])
    })() as never,
  }),
  'headers as URLSearchParams': () => ({ headers: new URLSearchParams({ 'X-Kept': 'yes' }) as never }),
  'headers with a number': () => ({ headers: { 'X-Kept': 5 } as never }),
  'headers that are null': () => ({ headers: null as never }),
  'headers that are none': () => ({ headers: [['one']] as never }),
  'headers with a bad name': () => ({ headers: { 'a b': 'c' } }),
  'all that a proxy would see': () => ({
    headers: { 'Proxy-Authorization': 'a', Host: 'other.test', 'Content-Language': 'de', Accept: 'x/y' },
  }),
  'a method in small letters': () => ({ method: 'put', body: 'data' }),
  'the method patch in small letters': () => ({ method: 'patch', body: 'data' }),
  'a method of its own': () => ({ method: 'Purge' }),
  'the method DELETE': () => ({ method: 'DELETE', headers: { 'X-Kept': 'yes' } }),
  'the method OPTIONS': () => ({ method: 'OPTIONS' }),
  'the method HEAD': () => ({ method: 'HEAD' }),
  'a method that is forbidden': () => ({ method: 'TRACE' }),
  'a GET with a body': () => ({ body: 'data' }),
  'redirect: manual': () => ({ redirect: 'manual' }),
  'redirect: error': () => ({ redirect: 'error' }),
  'redirect: none that is known': () => ({ redirect: 'maybe' as never }),
  'an aborted signal': () => ({ signal: AbortSignal.abort(new Error('mine')) }),
  'a signal': () => ({ signal: new AbortController().signal }),
  'no signal': () => ({ signal: null }),
  'a signal that is none': () => ({ signal: {} as never }),
  'integrity, of the answer': () => ({ integrity: sha(256, 'hello') }),
  'integrity, of another answer': () => ({ integrity: sha(256, 'moved') }),
  'integrity, the strongest counts': () => ({ integrity: `${sha(256, 'x')} ${sha(512, 'hello')}` }),
  'integrity, the strongest is wrong': () => ({ integrity: `${sha(256, 'hello')} ${sha(384, 'x')}` }),
  'integrity, one of two': () => ({ integrity: `${sha(384, 'x')}  ${sha(384, 'hello')}` }),
  'integrity, unknown': () => ({ integrity: 'md5-abc' }),
  'integrity, manual': () => ({ integrity: sha(256, 'moved'), redirect: 'manual' }),
  'integrity, without a body': () => ({ integrity: sha(256, ''), method: 'HEAD' }),
  'a referrer': () => ({ referrer: 'http://127.0.0.1:1/page?query', referrerPolicy: 'unsafe-url' }),
  'a cache mode': () => ({ cache: 'no-store' }),
  'credentials, mode, keepalive': () => ({ credentials: 'omit', mode: 'cors', keepalive: true }),
  'mode: same-origin': () => ({ mode: 'same-origin' }),
  'a window': () => ({ window: null }),
  'inherited members': () => new Inherited() as never,
  'a Request as the second argument': () =>
    new Request('http://other.test/', post('data', { headers: { 'X-Kept': 'of the Request' } })) as never,
  'a number': () => 5 as never,
  'a function': () => Object.assign(() => {}, { method: 'PUT', body: 'data' }) as never,
}

/** The same with bytes as a blob: the `fetch` of Node.js 20 loses bytes when it sends them, and can't do so again. */
function withoutBytes(init: Init | null): Init | null {
  const { body } = init ?? {}
  const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body)
  return isBytes ? { ...init, body: new Blob([body as ArrayBuffer]) } : init
}

/** The first argument, of a URL and what the call is given. */
const INPUTS: Readonly<Record<string, (url: string, init: Init | null) => Parameters<Fetch>>> = {
  'a string': (url, init) => [url, init as Init],
  'a URL': (url, init) => [new URL(url), init as Init],
  'an object with a text': (url, init) => [{ toString: () => url } as never, init as Init],
  'a Request with all of it': (url, init) => [new Request(url, init as Init)],
  'a Request, and all of it beside': (url, init) => [
    new Request(url, post('of the Request', { headers: { 'X-Kept': 'no' } })),
    init as Init,
  ],
}

/** Where a call goes: OTHER is the same server by another name. */
const PATHS = sized({
  quick: ['/end', '/302?to=OTHER/307?to=/end'],
  full: [
    '/end',
    '/301?to=/end',
    '/303?to=/end',
    '/307?to=/end%23part',
    '/308?to=OTHER/end',
    '/302?to=OTHER/307?to=/end',
  ],
})

async function withLog(use: (url: string, log: string[]) => Promise<void>): Promise<void> {
  const log: string[] = []
  await withServer(
    async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      // Whether the connection is kept, and the boundary of a form, are not the call's.
      const headers = request.rawHeaders.map((each) => each.replace(/formdata-undici-\d+/, 'BOUNDARY'))
      const sent = headers.flatMap((name, i) =>
        i % 2 === 0 && !/^connection$/i.test(name) ? [`${name}: ${headers[i + 1]}`] : [],
      )
      const body = Buffer.concat(chunks)
        .toString()
        .replace(/formdata-undici-\d+/g, 'BOUNDARY')
      log.push([`${request.method} ${request.url}`, ...sent.toSorted(), body].join('\n'))
      const { pathname, search } = new URL(request.url!, 'http://server')
      const status = Number(pathname.slice(1))
      if (status < 300 || Number.isNaN(status)) response.end('hello')
      else
        response.writeHead(status, { Location: decodeURIComponent(search.slice('?to='.length)) }).end('moved')
    },
    (url) => use(url, log),
  )
}

const limiter = createLimiter({ limit: 1_000_000, window: '1s' })

/** What came of a call: the answer, or the kind of error; and what the server has got. */
async function outcomeOf(call: Call, fetch: Fetch, url: string, log: string[]): Promise<unknown> {
  log.length = 0
  const outcome = await settled(call(fetch, url))
  if (outcome.status === 'rejected') {
    const { name, message } = outcome.reason
    return { name, ...(name !== 'TypeError' && { message }), log: [...log] }
  }
  const { status, statusText, type, redirected, url: at } = outcome.value as Response
  const text = await (outcome.value as Response).text()
  return { status, statusText, type, redirected, at, text, log: [...log] }
}

async function assertSame(
  name: string,
  call: Call,
  original: Fetch,
  url: string,
  log: string[],
  right: Call = call,
): Promise<void> {
  const expected = await outcomeOf(right, original, url, log)
  const seen = await outcomeOf(call, limitedFetch(original, { limiter }), url, log)
  assert.equal(seen, expected, `${name} ${url}`)
}

/** Node.js 24 forgets the referrer of a `Request`. Others send it. */
const FORGETS_REFERRER = /^a Request with all of it, a referrer$/

/** A Request does not say whether its stream of bytes is of data. So these are sent again, too. */
const SENT_AGAIN = /^a Request with all of it, (a stream of bytes|a generator|a stream of Node|a Request as)/

const PAIRS = Object.entries(INPUTS).flatMap(([input, argumentsOf]) =>
  [...Object.entries(INITS), ...Object.entries(BODIES)].map(
    ([init, make]) => [`${input}, ${init}`, argumentsOf, make] as const,
  ),
)

for (const path of PATHS) {
  test(`every form of the arguments is sent as by fetch: ${path}`, () =>
    withLog(async (url, log) => {
      const other = url.replace('127.0.0.1', 'localhost')
      const target = `${url}${path.replaceAll('OTHER', other)}`
      for (const [name, argumentsOf, make] of PAIRS) {
        if (SENT_AGAIN.test(name) && /30[1278]/.test(path)) continue
        const call: Call = async (fetch, at) => fetch(...argumentsOf(at, make()))
        const right: Call = FORGETS_REFERRER.test(name)
          ? async (fetch, at) => fetch(at, make() as Init)
          : async (fetch, at) => fetch(...argumentsOf(at, withoutBytes(make())))
        await assertSame(name, call, fetch, target, log, right)
      }
    }))
}

test('a Request with a stream of bytes is sent again over a redirect with all of its data, or rejected as by fetch', () =>
  withLog(async (url, log) => {
    const limited = limitedFetch(fetch, { limiter })
    for (const body of [new Blob(['data']).stream(), generated('data'), streamOf('data')]) {
      const request = new Request(`${url}/307?to=/end`, post(body, { duplex: 'half' }))
      const outcome = await settled(limited(request))
      if (outcome.status === 'rejected') assert.instance(outcome.reason, TypeError)
      else assert.is(await outcome.value.text(), 'hello')
      assert.match(log.pop()!, outcome.status === 'rejected' ? /^POST \/307/ : /^POST \/end\n[\s\S]*\ndata$/)
    }
  }))

test('fetch of the package undici, with its own classes', () =>
  withLog(async (url, log) => {
    const calls: Readonly<Record<string, Call>> = {
      Headers: (fetch, at) => fetch(at, { headers: new UndiciHeaders({ 'x-kept': 'yes' }) as never }),
      pairs: (fetch, at) => fetch(at, { headers: [['X-Kept', 'yes']] }),
      'a form': (fetch, at) => fetch(at, post(formOf(UndiciForm as never))),
      'a Request': (fetch, at) => fetch(new UndiciRequest(at, { method: 'PUT', body: 'data' }) as never),
      'the Request of Node.js': async (fetch, at) => fetch(new Request(at)),
    }
    for (const path of ['/end', '/307?to=/end', '/303?to=/end'])
      for (const [name, call] of Object.entries(calls))
        await assertSame(`${name} ${path}`, call, undiciFetch as never, `${url}${path}`, log)
  }))

test('what is no URL of HTTP, or none at all, is an error or an answer as of fetch', () =>
  withLog(async (_, log) => {
    const calls: Readonly<Record<string, Call>> = {
      'a relative URL': (fetch) => fetch('/path'),
      nothing: (fetch) => (fetch as () => Promise<Response>)(),
      null: (fetch) => fetch(null as never),
      'an object': (fetch) => fetch({ url: 'http://127.0.0.1/', method: 'GET' } as never),
      credentials: (fetch) => fetch('http://me:secret@127.0.0.1:1/'),
      'data:': (fetch) => fetch('data:text/plain,hello', { integrity: sha(256, 'hello') }),
      'data: of a Request': async (fetch) => fetch(new Request('data:text/plain,hello')),
      'data: with the wrong integrity': (fetch) => fetch('data:,hello', { integrity: sha(256, 'x') }),
      'blob:': (fetch) => fetch(URL.createObjectURL(new Blob(['hello'])).replace(/^/, '')).then(named),
      'ftp:': (fetch) => fetch('ftp://127.0.0.1/'),
    }
    for (const [name, call] of Object.entries(calls)) await assertSame(name, call, fetch, '', log)
  }))

/** A response without its URL, which is another for each blob. */
const named = (response: Response) => new Response(response.body, response)

test('the policy that a redirect has for the referrer holds from then on', async () => {
  for (const policy of ['no-referrer', 'origin', 'no-such-policy, same-origin', 'nonsense']) {
    const log: unknown[] = []
    await withServer(
      (request, response) => {
        log.push(request.headers.referer)
        const headers = { Location: '/end', 'Referrer-Policy': policy }
        response.writeHead(request.url === '/end' ? 200 : 302, headers).end()
      },
      async (url) => {
        const init: RequestInit = { referrer: `${url}/page?query`, referrerPolicy: 'unsafe-url' }
        for (const call of [fetch, limitedFetch(fetch, { limiter })]) await (await call(url, init)).text()
      },
    )
    assert.equal(log.slice(2), log.slice(0, 2), policy)
  }
})

test('each argument is read once', () =>
  withLog(async (url, log) => {
    const reads = new Map<PropertyKey, number>()
    const counting = <T extends object>(target: T, prefix: string): T =>
      new Proxy(target, {
        get(_, name) {
          const key = `${prefix} ${String(name)}`
          reads.set(key, (reads.get(key) ?? 0) + 1)
          return Reflect.get(target, name)
        },
      })
    const headers = counting({ 'X-Kept': 'yes', Authorization: 'secret' }, 'header')
    const body = {
      toString: () => {
        reads.set('body', (reads.get('body') ?? 0) + 1)
        return 'data'
      },
    }
    const init = counting({ method: 'POST', headers, body, redirect: 'follow' }, 'init')
    const limited = limitedFetch(fetch, { limiter, key: ({ headers: own }) => own.get('X-Kept')! })
    await limited(`${url}/307?to=/308?to=/end`, init as never)
    assert.is(log.length, 3)
    assert.match(log[2]!, /Authorization: secret\n[\s\S]*data$/)
    for (const name of ['init headers', 'init method', 'init body', 'header Authorization', 'body'])
      assert.is(reads.get(name), 1, name)
    for (const [name, count] of reads) assert.is(count, 1, String(name))
  }))

test('what the caller changes while a call waits is not sent', () =>
  withLog(async (url, log) => {
    const clock = manualClock()
    const tight = createLimiter({ limit: 1, window: '1m', clock })
    const limited = limitedFetch(fetch, { limiter: tight, jitter: () => 0 })
    await limited(`${url}/end`)
    const bytes = Buffer.from('data')
    const form = new URLSearchParams({ a: 'b' })
    const target = new URL(`${url}/end`)
    const headers = new Headers({ 'X-Kept': 'yes' })
    const init = { method: 'POST', headers, body: bytes }
    const request = new Request(target, { method: 'POST', headers, body: 'data' })
    const pending = [limited(target, init), limited(target, { ...init, body: form }), limited(request)]
    assert.ok(request.bodyUsed) // taken at once, as by fetch
    init.method = 'PUT'
    target.pathname = '/other'
    headers.set('X-Kept', 'no')
    request.headers.set('X-Kept', 'no')
    bytes.fill('x')
    form.set('a', 'x')
    for (let sent = 2; sent <= 4; sent++) {
      await until(() => {
        clock.advance(60_000)
        return log.length >= sent
      }, 'the next call')
    }
    await Promise.all(pending)
    for (const seen of log.slice(1)) {
      assert.match(seen, /^POST \/end\n/)
      assert.match(seen, /X-Kept: yes/i)
      assert.match(seen, /\n(data|a=b)$/)
    }
    await tight.close()
  }))

test('a long body of a Request is sent, and over a redirect as by fetch up to 64 MiB', () =>
  withServer(
    async (request, response) => {
      let length = 0
      for await (const chunk of request) length += chunk.length
      if (request.url === '/end') response.end(`${length}`)
      else response.writeHead(307, { Location: '/end' }).end()
    },
    async (url) => {
      const limited = limitedFetch(fetch, { limiter })
      const send = (path: string, size: number) =>
        settled(
          limited(new Request(url + path, post(new Uint8Array(size)))).then((response) => response.text()),
        )
      const most = 64 * 1024 * 1024
      assert.equal(await send('/307', most), { status: 'fulfilled', value: `${most}` })
      assert.equal(await send('/end', most + 1), { status: 'fulfilled', value: `${most + 1}` })
      assert.instance(((await send('/307', most + 1)) as PromiseRejectedResult).reason, TypeError)
    },
  ))

test.after(() => limiter.close())
test.run()
