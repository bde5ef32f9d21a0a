// run: full
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttp, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { DemoResult } from 'millrace-cli/dist/demo/demo.js'
import { load } from 'millrace-cli/dist/demo/load.js'
import { CLIENT_HEADER } from 'millrace-cli/dist/demo/messages.js'
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

test('a limit that no load reaches is no proof: the load is raised, and the demo exits with 1', async () => {
  const args = ['demo', '--seconds', '1', '--clients', '5', '--limit', '4000000', '--window', '500ms']
  const { code, out } = await ran([...args, '--json'])
  const { held, reached, inFlight, greedy, mostInAnyWindow }: DemoResult = JSON.parse(out)
  assert.equal([code, held, reached, inFlight, greedy.refused], [1, true, false, 64, 0])
  assert.ok(mostInAnyWindow > 0)
})

test('a limit that the first load reaches needs no other', async () => {
  const { code, out } = await ran(['demo', '--seconds', '1', '--clients', '5', '--limit', '10', '--json'])
  const { reached, inFlight }: DemoResult = JSON.parse(out)
  assert.equal([code, reached, inFlight], [0, true, 1])
})

test('a raised load has as many requests of each greedy client under way', async () => {
  const waiting = new Map<string, ServerResponse[]>()
  const app = createHttp((request, response) => {
    const client = String(request.headers[CLIENT_HEADER])
    const held = [...(waiting.get(client) ?? []), response]
    waiting.set(client, held.length === 8 ? [] : held)
    if (held.length === 8) for (const each of held) each.end() // with less under way, nothing would ever be answered
  }).listen(0, '127.0.0.1')
  await once(app, 'listening')
  const kinds = [{ name: 'greedy', first: 3, clients: 2, perSecond: undefined, most: undefined }] as const
  const stop = new AbortController()
  const { port } = app.address() as AddressInfo
  const tally = await load([port], '/', kinds, { ms: 60_000, inFlight: 8 }, stop.signal, ({ requests }) => {
    if (requests >= 64) stop.abort()
  })
  app.closeAllConnections()
  app.close()
  assert.ok(tally.responses.greedy.admitted >= 64)
  assert.equal([...waiting.keys()].toSorted(), ['3', '4'])
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
  assert.match(out, /Stopped early\.\n(?:Held|Not reached): /)
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
