// examples/nginx/nginx.conf with Debian's nginx: 429 with its fields over the limit, 503 or a pass without an engine.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, manualClock } from 'millrace'
import { serve } from 'millrace-service'
import * as assert from 'uvu/assert'
import { readText } from '../package/root.js'
import { poll } from '../redis/poll.js'
import { nginxTest as test } from '../redis/skip.js'
import { nginxText } from './nginx-text.js'

async function freePort(): Promise<number> {
  const server = createTcp().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function withNginx(passes: boolean, act: (url: string, stop: () => Promise<void>) => Promise<void>) {
  const clock = manualClock(1_000)
  const limiter = createLimiter({ limit: 2, window: '1m', clock })
  const options = { port: 0, logLevel: 'silent' } as const
  const engine = await serve(options, { limiters: new Map([['default', limiter]]) })
  const app = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(app, 'listening')
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-nginx-'))
  let text = readText('examples/nginx/nginx.conf')
    .replace('127.0.0.1:8080;', `${new URL(engine.url).host};`)
    .replace('127.0.0.1:8000', `127.0.0.1:${port}`)
    .replace('127.0.0.1:9000', `127.0.0.1:${(app.address() as AddressInfo).port}`)
  if (passes) text = text.replace('# proxy_intercept_errors', 'proxy_intercept_errors')
  writeFileSync(join(folder, 'nginx.conf'), nginxText(text, folder))
  const nginx: ChildProcess = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const url = `http://127.0.0.1:${port}/`
  try {
    await poll(
      () =>
        fetch(`${url}@`, { method: 'HEAD' }).then(
          () => true,
          () => false,
        ),
      'nginx',
    )
    limiter.clear('127.0.0.1')
    await act(url, () => engine.close())
  } finally {
    nginx.kill()
    await once(nginx, 'close')
    app.close()
    app.closeAllConnections()
    await engine.close()
    limiter.close()
    rmSync(folder, { recursive: true })
  }
}

/** The status and the fields about limits of a request. */
async function ask(url: string) {
  const { status, headers } = await fetch(url)
  const shown = (name: string) => headers.get(name)
  return { status, after: shown('retry-after'), limit: shown('ratelimit'), policy: shown('ratelimit-policy') }
}

test('nginx passes what is under the limit, and answers 429 with its fields over it', () =>
  withNginx(false, async (url) => {
    assert.equal([(await ask(url)).status, (await ask(url)).status], [200, 200])
    const { status, after, limit, policy } = await ask(url)
    assert.is(status, 429)
    assert.ok(Number(after) > 0)
    assert.match(limit!, /r=0/)
    assert.match(policy!, /q=2;w=60/)
  }))

test('without an engine nginx answers 503, never 429', () =>
  withNginx(false, async (url, stop) => {
    await stop()
    const { status, after, limit } = await ask(url)
    assert.equal([status, after, limit], [503, '1', null])
  }))

test('or passes, with the line of the example', () =>
  withNginx(true, async (url, stop) => {
    await stop()
    assert.is((await ask(url)).status, 200)
  }))

test('the line of the example changes nothing while the engine answers', () =>
  withNginx(true, async (url) => {
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await ask(url)).status)
    assert.equal(statuses, [200, 200, 429])
  }))

test.run()
