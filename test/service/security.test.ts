// Who may do what, and what is in no log.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request as plainRequest } from 'node:http'
import { request } from 'node:https'
import { connect } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { makeCertificate } from './certificates.js'
import { command } from './command-line.js'
import { engine } from './engine.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
test.after(() => folder.remove())

const ROUTES: [path: string, body: object, scope: 'decide' | 'read' | 'change'][] = [
  ['/v1/check', { key: 'a' }, 'decide'],
  ['/v1/peek', { key: 'a' }, 'decide'],
  ['/v1/reserve', { key: 'a', cost: 1 }, 'decide'],
  ['/v1/refund', { key: 'a', cost: 1 }, 'decide'],
  ['/v1/penalize', { key: 'a', cost: 1 }, 'decide'],
  ['/v1/usage', { key: 'a' }, 'read'],
  ['/v1/stats', {}, 'read'],
  ['/v1/policies/list', {}, 'read'],
  ['/v1/policies/get', { key: 'a' }, 'read'],
  ['/v1/policies/put', { key: 'a', policy: { limit: 1, window: '1m' } }, 'change'],
  ['/v1/policies/delete', { key: 'a' }, 'change'],
  ['/v1/block', { key: 'a', ms: 1 }, 'change'],
  ['/v1/unblock', { key: 'a' }, 'change'],
  ['/v1/clear', { key: 'a' }, 'change'],
  ['/v1/check', { key: 'a', limit: 100 }, 'change'],
  ['/v1/check', { checks: [{ key: 'a', limit: { default: 100 } }] }, 'change'],
]
const SCOPES = ['decide', 'read', 'change'] as const
const tokenOf = (scope: string) => `${scope}-0123456789abcdef`
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

test('a token may do what its scopes say, and nothing else', async () => {
  const tokens = SCOPES.map((scope) => ({ token: tokenOf(scope), scopes: [scope] }))
  tokens.push({ token: tokenOf('all'), scopes: [...SCOPES] })
  writeFileSync(folder.path('policies.json'), '{}')
  const own = await engine({ limit: '10/1m', tokens, policies: `file:${folder.path('policies.json')}` })
  for (const [path, body, scope] of ROUTES) {
    const name = `${path} ${JSON.stringify(body)}`
    const needsBoth = scope === 'change' && path === '/v1/check'
    for (const each of SCOPES) {
      const { status } = await own.post(path, body, bearer(tokenOf(each)))
      assert.is(status === 403, each !== scope || needsBoth, `${name} with ${each}: ${status}`)
    }
    assert.is.not((await own.post(path, body, bearer(tokenOf('all')))).status, 403, name)
    for (const headers of [
      {},
      bearer('none-0123456789abcdef'),
      bearer(''),
      { authorization: 'Basic YTpi' },
    ]) {
      const { status, headers: sent } = await own.post(path, body, headers)
      assert.equal([status, sent.get('www-authenticate')], [401, 'Bearer'], name)
    }
  }
  await own.close()
})

test('without configured tokens nothing can be changed', async () => {
  const own = await engine({ limit: '10/1m' })
  for (const [path, body, scope] of ROUTES) {
    const { status } = await own.post(path, body)
    assert.is(status === 403, scope === 'change', `${path}: ${status}`)
    assert.is((await own.post(path, body, bearer('any-0123456789abcdef'))).status, 401)
  }
  await own.close()
})

/** The status and the code of an answer to a request with this Host. */
const askFor = (url: string, method: string, path: string, host: string, headers = {}) =>
  new Promise<string>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const json = method === 'POST' ? { 'content-type': 'application/json' } : {}
    const options = { host: hostname, port, method, path, headers: { ...json, host, ...headers } }
    const sent = plainRequest(options, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      const [code] = /ERR_MILLRACE_\w+/.exec(Buffer.concat(chunks).toString()) ?? []
      resolve([response.statusCode, code].filter(Boolean).join(' '))
    })
    sent.on('error', reject)
    sent.end(method === 'POST' ? '{"key":"a"}' : undefined)
  })

const ASKED = [
  ['POST', '/v1/check'],
  ['POST', '/v1/usage'],
  ['GET', '/v1/limiters'],
  ['GET', '/metrics'],
  ['GET', '/openapi.json'],
] as const
const FOREIGN = [
  'evil.example',
  'evil.example:80',
  '127.0.0.1.evil.example',
  'localhost.evil',
  '10.0.0.1',
  '[::2]',
  'x',
]

test('without tokens a name of elsewhere, by which a browser may be led here, is refused', async () => {
  const own = await engine({ limit: '100/1m', hosts: ['Limits.example'] })
  const { port } = new URL(own.url)
  const here = ['localhost', `LocalHost:${port}`, '127.0.0.1', `127.1.2.3:${port}`, '[::1]', `[::1]:${port}`]
  for (const [method, path] of ASKED) {
    for (const host of [...here, 'limits.example', 'LIMITS.example:443'])
      assert.is(await askFor(own.url, method, path, host), '200', `${path} ${host}`)
    for (const host of FOREIGN)
      assert.is(await askFor(own.url, method, path, host), '421 ERR_MILLRACE_MISDIRECTED', `${path} ${host}`)
  }
  for (const path of ['/healthz', '/readyz'])
    assert.is(await askFor(own.url, 'GET', path, 'evil.example'), '200', path)
  await own.close()
})

test('with tokens any name is answered, and nothing is open by it that needs one', async () => {
  const tokens = [{ token: tokenOf('all'), scopes: SCOPES }]
  const own = await engine({ limit: '100/1m', tokens })
  for (const [method, path] of ASKED) {
    assert.is(await askFor(own.url, method, path, 'limits.example', bearer(tokenOf('all'))), '200', path)
    assert.is(await askFor(own.url, method, path, 'evil.example'), '401 ERR_MILLRACE_UNAUTHORIZED', path)
  }
  await own.close()
})

/** Another address of this machine, which is not loopback. */
const address = execFileSync('hostname', ['-I'], { encoding: 'utf8' }).split(' ')[0]!.trim()

test('off loopback, /metrics and /openapi.json need the scope read', async () => {
  const tokens = SCOPES.map((scope) => ({ token: tokenOf(scope), scopes: [scope] }))
  const own = await engine({ limit: '10/1m', tokens, host: '0.0.0.0' })
  const { port } = new URL(own.url)
  for (const path of ['/metrics', '/openapi.json']) {
    const ask = async (host: string, headers = {}) =>
      (await fetch(`http://${host}:${port}${path}`, { headers })).status
    assert.is(await ask('127.0.0.1'), 200)
    if (address === '') continue
    assert.equal(
      [
        await ask(address),
        await ask(address, bearer(tokenOf('decide'))),
        await ask(address, bearer(tokenOf('read'))),
      ],
      [401, 403, 200],
    )
  }
  await own.close()
})

test('mutual TLS: a client without a certificate of the authority gets no answer', async () => {
  makeCertificate(folder, 'authority')
  makeCertificate(folder, 'stranger')
  makeCertificate(folder, 'server', 'authority')
  makeCertificate(folder, 'client', 'authority')
  const own = await engine({
    limit: '10/1m',
    host: '0.0.0.0',
    tlsCert: folder.path('server.pem'),
    tlsKey: folder.path('server.key'),
    tlsClientCa: folder.path('authority.pem'),
  })
  const { port } = new URL(own.url)
  const ask = (path: string, name?: string) =>
    new Promise<number | string>((resolve) => {
      const key = name && {
        cert: readFileSync(folder.path(`${name}.pem`)),
        key: readFileSync(folder.path(`${name}.key`)),
      }
      request({
        host: '127.0.0.1',
        port,
        path,
        ca: readFileSync(folder.path('authority.pem')),
        agent: false,
        ...key,
      })
        .on('response', (response) => {
          response.resume()
          resolve(response.statusCode!)
        })
        .on('error', (error: NodeJS.ErrnoException) => resolve(error.code!))
        .end()
    })
  assert.is(await ask('/v1/limiters', 'client'), 200)
  assert.type(await ask('/v1/limiters', 'stranger'), 'string')
  assert.type(await ask('/v1/limiters'), 'string')
  await own.close()
})

test('what is no HTTP is in no log, at any level', async () => {
  const process = await command(['--limit', '10/1m', '--port', '0'], { MILLRACE_SERVE_LOG_LEVEL: 'trace' })
  const socket = connect(Number(new URL(process.url).port), '127.0.0.1')
  socket.end(
    'POST /v1/check HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer the-token\r\n\u0001\r\n\r\n',
  )
  let answer = ''
  for await (const part of socket) answer += part
  assert.match(answer, /^HTTP\/1.1 400/)
  assert.is(await process.end(), 0)
  const bytes = [...Buffer.from('the-token')].join(',')
  assert.not.ok(process.stderr.includes(bytes) || process.stderr.includes('the-token'), process.stderr)
})

test('no key, token or body is in the log at info, whatever goes wrong', async () => {
  const token = 'the-token-0123456789'
  const process = await command(['--limit', '10/1m'], {
    MILLRACE_SERVE_LOG_LEVEL: 'info',
    MILLRACE_SERVE_PORT: '0',
    MILLRACE_SERVE_TOKENS: JSON.stringify([
      { token, scopes: ['decide'] },
      { name: 'operators', token: 'another-token-0123456789', scopes: ['change'] },
    ]),
  })
  const ask = (path: string, body: string, authorization = `Bearer ${token}`) =>
    fetch(`${process.url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization,
        'idempotency-key': 'the-idempotency-key',
      },
      body,
    })
  const bodies = [
    '{"key":"the-client"}',
    '{"key":"the-client"',
    '{"key":"the-client","cost":"the-cost"}',
    '{"the-field":1}',
  ]
  for (const body of bodies) await ask('/v1/check', body)
  await ask('/v1/block', bodies[0]!)
  await ask('/v1/unblock', bodies[0]!, 'Bearer another-token-0123456789')
  await ask('/v1/check', bodies[0]!, 'Bearer the-wrong-token')
  await ask('/v1/the-path?key=the-client', bodies[0]!)
  await ask('/v1/refund', '{"token":"the-refund.token"}')
  assert.is(await process.end(), 0)
  assert.match(process.stderr, 'Server listening')
  assert.match(process.stderr, '"caller":"operators","route":"/v1/unblock"')
  assert.not.match(process.stderr + process.stdout, /the-|another-/)
})

test.run()
