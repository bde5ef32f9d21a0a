// run: full
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { DemoResult } from 'millrace-cli/dist/demo/demo.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'

const MAIN = fileURLToPath(new URL('../../../../cli/dist/main.js', import.meta.url))

async function listening(): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

const SETTINGS = [
  [3, 'inline'],
  [2, 'pool'],
  [1, 'inline'],
  [1, 'pool'],
] as const
for (const [threads, engine] of SETTINGS) {
  test(`under real load on ${threads} threads, ${engine}: no client exceeds the limit, no polite client is refused`, async () => {
    const { code, out, err } = await ran(
      ['demo', '--seconds', '1', '--clients', '12', '--limit', '10', '--window', '500ms', '--json'].concat(
        ...[engine === 'inline' ? [] : ['--engine', engine]],
        '--threads',
        String(threads),
      ),
    )
    const { polite, greedy, withLimiter, withoutLimiter, ...result }: DemoResult = JSON.parse(out)
    assert.equal([code, err], [0, ''])
    assert.equal([result.limit, result.windowMs, result.threads, result.engine], [10, 500, threads, engine])
    assert.equal([polite.clients, greedy.clients], [10, 2])
    assert.equal([polite.refused, polite.failed, greedy.failed], [0, 0, 0])
    assert.is(result.mostInAnyWindow, 10, 'greedy clients use the whole limit')
    assert.ok(greedy.refused > 0 && greedy.admitted >= 10)
    assert.is(greedy.requests, greedy.admitted + greedy.refused)
    for (const { requests, p50Ms, p99Ms } of [withLimiter, withoutLimiter])
      assert.ok(requests > 0 && p50Ms > 0 && p99Ms >= p50Ms)
    assert.ok(Math.max(...result.history.used) <= 10)
  })
}

test('the report has tables, a chart and the verdict; a terminal gets progress', async () => {
  const { code, out, err } = await ran(['demo', '--seconds', '1', '--clients', '5'], [], 100)
  assert.is(code, 0)
  for (const part of ['4 polite', '1 greedy', 'longest pause', 'The busiest greedy client', '\nHeld: '])
    assert.ok(out.includes(part), part)
  assert.match(err, /s left, without limiter · [\d,]+ requests · p50/)
  assert.match(err, /s left, with limiter · [\d,]+ requests · [\d,]+ admitted · [\d,]+ refused/)
})

test('the report names the pool engine', async () => {
  const { code, out } = await ran(['demo', '--seconds', '1', '--clients', '5', '--engine', 'pool'])
  assert.is(code, 0)
  assert.match(out.replaceAll(/\s+/g, ' '), /^1 server thread with a pool of worker threads, 5 clients/)
  assert.match(out, /\nHeld: /)
})

test('the error for a port in use suggests another', async () => {
  const { server, port } = await listening()
  const { code, err } = await ran(['demo', '--port', String(port)])
  server.close()
  assert.equal([code, err.split('\n').length], [2, 2])
  assert.match(err, new RegExp(`^millrace: port ${port} is in use; choose another with --port`))
})

for (const [option, value, expected] of [
  ['--seconds', '0', 'from 1 to 3,600'],
  ['--clients', '1', 'from 2 to 2,000'],
  ['--threads', 'two', 'from 1 to 64'],
  ['--engine', 'remote', 'inline, pool'],
  ['--port', '70000', 'from 0 to 65535'],
  ['--window', '60', 'Add a unit'],
  ['--limit', '0', 'whole number of 1 or more'],
] as const) {
  test(`${option} ${value} is an error`, async () => {
    const { code, err } = await ran(['demo', option, value])
    assert.is(code, 2)
    assert.ok(err.includes(expected), err)
  })
}

test('Ctrl-C stops the demo, prints the results so far, and exits with 130', async () => {
  const { server, port } = await listening() // finds a free port, which the demo uses after it is closed
  await new Promise((resolve) => server.close(resolve))
  const demo = spawn(process.execPath, [MAIN, 'demo', '--seconds', '3000', '--port', String(port)])
  let out = ''
  demo.stdout.on('data', (chunk) => {
    out += chunk
  })
  const exited = once(demo, 'exit')
  await answers(port)
  demo.kill('SIGINT')
  assert.equal(await exited, [130, null])
  assert.match(out, /Stopped early\.\nHeld: /)
})

/** Resolves once a server listens on the port. */
async function answers(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const open = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (open) return
  }
}

test.run()
