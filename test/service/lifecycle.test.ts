// What changes while an engine runs, and how it ends.
// run: own
import { once } from 'node:events'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../native/sides.js'
import { startRedis } from '../redis/servers.js'
import { makeCertificate } from './certificates.js'
import { command } from './command-line.js'
import { engine } from './engine.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
test.after(() => folder.remove())

const TOKENS = ['first-token-0123456789', 'second-token-0123456789']
const tokensOf = (token: string) => JSON.stringify([{ token, scopes: ['decide', 'read', 'change'] }])

/** Puts a file in the place of another, as a mounted secret is changed. */
function put(name: string, text: string): string {
  writeFileSync(folder.path(`${name}.new`), text)
  renameSync(folder.path(`${name}.new`), folder.path(name))
  return folder.path(name)
}

const check = (url: string, token: string, key = 'a') =>
  fetch(`${url}/v1/check`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ key }),
  })

const OF_INFO = { MILLRACE_SERVE_LOG_LEVEL: 'info' }
const RELOADED = 'secrets were read again'
const HOW = ['SIGHUP', 'its file'] as const

test('a token that is changed holds without a restart, and one that is wrong is named', async () => {
  const file = put('tokens.json', tokensOf(TOKENS[0]!))
  const running = await command(['--limit', '100/1m', '--port', '0', '--tokens-file', file], OF_INFO)
  let [token, next] = TOKENS as [string, string]
  for (const how of HOW) {
    assert.is((await check(running.url, token)).status, 200)
    assert.is((await check(running.url, next)).status, 401)
    put('tokens.json', tokensOf(next))
    if (how === 'SIGHUP') running.process.kill('SIGHUP')
    while ((await check(running.url, next)).status !== 200) await running.logged(RELOADED)
    assert.is((await check(running.url, token)).status, 401, how)
    ;[token, next] = [next, token]
  }
  put('tokens.json', '[{ token: s3cret }]')
  running.process.kill('SIGHUP')
  await running.logged('stay as they were')
  assert.match(running.stderr, /stay as they were: .*tokens\[0\]\.token: expected 16 or more/)
  assert.not.match(running.stderr, 's3cret')
  assert.is((await check(running.url, token)).status, 200)
  assert.is(await running.end(), 0)
})

/** The name in the certificate of a server. */
async function certificateOf(url: string): Promise<string> {
  const socket = connectTls({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('a certificate that is changed holds without a restart', async () => {
  makeCertificate(folder, 'old')
  makeCertificate(folder, 'new')
  const use = (name: string) => {
    const copied = (kind: string) => put(`tls.${kind}`, readFileSync(folder.path(`${name}.${kind}`), 'utf8'))
    return ['--tls-cert', copied('pem'), '--tls-key', copied('key')]
  }
  const running = await command(['--limit', '100/1m', '--port', '0', ...use('old')], OF_INFO)
  assert.is(await certificateOf(running.url), 'old')
  for (const [i, how] of HOW.entries()) {
    const name = ['new', 'old'][i]!
    use(name)
    if (how === 'SIGHUP') running.process.kill('SIGHUP')
    while ((await certificateOf(running.url)) !== name) await running.logged(RELOADED)
  }
  assert.is(await running.end(), 0)
})

test('when one file is wrong, nothing of the others is changed', async () => {
  makeCertificate(folder, 'server')
  makeCertificate(folder, 'other')
  const [tlsCert, tlsKey] = [folder.path('server.pem'), folder.path('server.key')]
  const own = await engine({
    limit: '100/1m',
    host: '0.0.0.0',
    ...{ tlsCert, tlsKey, tokensFile: put('tokens.json', tokensOf(TOKENS[0]!)) },
  })
  put('tokens.json', tokensOf(TOKENS[1]!))
  writeFileSync(tlsCert, readFileSync(folder.path('other.pem')))
  assert.throws(() => own.reload(), /^tlsCert, tlsKey, tlsClientCa: expected PEM files/)
  writeFileSync(tlsCert, 'no certificate')
  assert.throws(() => own.reload(), /^tlsCert, tlsKey, tlsClientCa: expected PEM files/)
  assert.is(await certificateOf(own.url), 'server')
  const statusBy = (token: string) =>
    new Promise((resolve) => {
      const headers = { authorization: `Bearer ${token}` }
      get(`${own.url}/v1/limiters`, { headers, rejectUnauthorized: false, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
    })
  assert.equal([await statusBy(TOKENS[0]!), await statusBy(TOKENS[1]!)], [200, 401])
  await own.close()
})

test('an engine off loopback does not lose its last token by a reload', async () => {
  const file = put('tokens.json', tokensOf(TOKENS[0]!))
  const own = await engine({ limit: '100/1m', host: '0.0.0.0', tokensFile: file })
  const url = `http://127.0.0.1:${new URL(own.url).port}`
  put('tokens.json', '[]')
  assert.throws(() => own.reload(), /^host: expected tokens or TLS/)
  assert.is((await fetch(`${url}/v1/limiters`)).status, 401)
  assert.is((await check(url, TOKENS[0]!)).status, 200)
  await own.close()
})

test('a signing key is changed with the old one beside it, and no token is lost', async () => {
  const keys = ['the first signing key, of 32 characters', 'the second signing key, of 32 characters']
  const file = put('keys.json', JSON.stringify([keys[0]]))
  const own = await engine({ limit: '100/1m', signingKeysFile: file })
  const tokenOf = async () => (await own.post('/v1/check', { key: 'a', token: true })).body.token as string
  const refunded = async (token: string) =>
    (await own.post('/v1/refund', { token })).body.refunded as number | undefined
  const old = [await tokenOf(), await tokenOf()]
  put('keys.json', JSON.stringify([keys[1], keys[0]]))
  own.reload()
  const next = await tokenOf()
  assert.equal([await refunded(old[0]!), await refunded(next)], [1, 1])
  put('keys.json', JSON.stringify([keys[1]]))
  own.reload()
  assert.is(await refunded(old[1]!), undefined)
  await own.close()
})

test('a password of Redis is changed without a restart', async () => {
  const redis = await startRedis({ args: ['--requirepass', 'one'] })
  const file = put('password', 'one\n')
  const url = `redis://127.0.0.1:${redis.port}`
  const own = await engine({ limit: '100/1m', counts: url, deadline: '10s', countsPasswordFile: file })
  assert.is((await own.post('/v1/check', { key: 'a' })).status, 200)
  put('password', 'two')
  own.reload()
  const admin = connect(redis.port, '127.0.0.1')
  admin.write('AUTH one\r\nCONFIG SET requirepass two\r\nCLIENT KILL TYPE normal\r\n')
  await once(admin, 'data')
  let answer = await own.post('/v1/check', { key: 'a' })
  while (answer.status !== 200) answer = await own.post('/v1/check', { key: 'a' })
  assert.is(answer.body.remaining, 98)
  admin.destroy()
  await own.close()
  await redis.stop()
})

test('SIGTERM: not ready, requests in flight are answered, and counts in a file are kept', async () => {
  const counts = isLeftOut() ? [] : ['--counts', `file:${folder.path('counts')}`]
  const args = ['--limit', '10/1m', '--port', '0', '--drain-delay', '500ms', ...counts]
  const running = await command(args)
  const port = Number(new URL(running.url).port)
  const body = '{"key":"a","cost":4}'
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text
  })
  socket.write(
    `POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
  )
  await fetch(`${running.url}/healthz`)
  const ended = running.end()
  let ready = await fetch(`${running.url}/readyz`)
  while (ready.status === 200) ready = await fetch(`${running.url}/readyz`)
  assert.is(((await ready.json()) as { code: string }).code, 'ERR_MILLRACE_DRAINING')
  while ((await fetch(`${running.url}/healthz`).catch(() => undefined)) !== undefined)
    await new Promise(setImmediate)
  socket.write(body)
  await once(socket, 'close')
  assert.match(answer, /^HTTP\/1.1 200 OK/)
  assert.match(answer, '"remaining":6')
  assert.is(await ended, 0)
  if (isLeftOut()) return
  const next = await command(args)
  const peek = await fetch(`${next.url}/v1/peek`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"key":"a"}',
  })
  assert.is(((await peek.json()) as { remaining: number }).remaining, 6)
  await next.end()
})

test('a request that takes longer than drainTimeout does not hold the end up', async () => {
  const running = await command([
    '--limit',
    '10/1m',
    '--port',
    '0',
    '--drain-timeout',
    '100ms',
    '--request-timeout',
    '60s',
  ])
  const socket = connect(Number(new URL(running.url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    'POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
  )
  await fetch(`${running.url}/healthz`)
  assert.is(await running.end(), 0)
})

test('it warns of a random signing key, and of policies of one machine while counts are shared', async () => {
  const redis = await startRedis()
  const file = put('policies.json', '{}')
  const options = { limit: '1/1m', policies: `file:${file}` }
  const alone = await engine(options)
  assert.is(alone.warnings.length, 1)
  assert.match(alone.warnings[0]!, /^signingKeys: none is configured/)
  await alone.close()
  const signingKeys = ['a signing key of 32 characters, or more']
  const shared = await engine({
    ...options,
    signingKeys,
    counts: `redis://127.0.0.1:${redis.port}`,
    deadline: '10s',
  })
  assert.is(shared.warnings.length, 1)
  assert.match(shared.warnings[0]!, /^policies: .* is a file of this machine/)
  await shared.close()
  await redis.stop()
})

test.run()
