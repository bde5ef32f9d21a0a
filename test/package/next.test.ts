// run: addon, long
// An app of the newest Next.js with the files of docs/how-to/nextjs.md: it limits, with all of the package.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pack, run, runNode } from './project.js'
import { readText, root } from './root.js'

const app = mkdtempSync(join(tmpdir(), 'millrace-next-'))
const deployed = mkdtempSync(join(tmpdir(), 'millrace-next-deployed-'))
test.after(() => {
  for (const folder of [app, deployed]) rmSync(folder, { recursive: true })
})

function write(path: string, code: string): void {
  mkdirSync(dirname(join(app, path)), { recursive: true })
  writeFileSync(join(app, path), code)
}

/** By the path in the first line of each. */
const pages = [
  ...readText('docs/how-to/nextjs.md').matchAll(/^```(?:js|jsx|ts)\n\/\/ (\S+)\n([\s\S]*?)^```/gm),
]
for (const [, path, code] of pages) write(path!, code!)
write('package.json', '{ "private": true }')
write('app/layout.jsx', 'export default ({ children }) => <html><body>{children}</body></html>')
write('app/page.jsx', 'export default () => <p>hello</p>')
write(
  'app/api/all/route.js',
  `import { createLimiter } from 'millrace'
  const rule = { limit: 9, window: '1m' }
  export async function GET() {
    const inline = createLimiter(rule)
    const pool = createLimiter({ ...rule, engine: 'pool', pool: { minThreads: 1, maxThreads: 1 } })
    const { remaining } = await pool.check('key')
    await pool.close()
    return Response.json({ native: inline.stats().native, remaining })
  }`,
)

const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }
const build = () => runNode(['node_modules/next/dist/bin/next', 'build'], app, env)

test('an app of TypeScript limits in each place, with the addon and on a pool, from a standalone folder', async () => {
  assert.equal(
    pages.map(([, path]) => path),
    [
      'app/api/login/route.ts',
      'app/api/users/[id]/route.ts',
      'proxy.ts',
      'app/limited/page.jsx',
      'pages/api/hello.js',
      'next.config.mjs',
    ],
  )
  const types = ['typescript@5', '@types/node@20', '@types/react@19']
  const modules = ['next@16', 'react@19', 'react-dom@19', ...types, await pack(root, app)]
  const installed = await run('npm', ['install', '--no-audit', '--no-fund', ...modules], app, env)
  assert.is(installed.code, 0, installed.err)
  const built = await build() // checks the types of the routes, too
  assert.is(built.code, 0, `${built.out}${built.err}`)
  cpSync(join(app, '.next/standalone'), deployed, { recursive: true })

  const server = spawn(process.execPath, ['server.js'], {
    cwd: deployed,
    env: { ...env, PORT: '0', HOSTNAME: '127.0.0.1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const address = await addressIn(server.stdout)
    const get = (path: string, from: string) =>
      fetch(`${address}${path}`, { headers: { 'x-forwarded-for': `203.0.113.9, ${from}` } })
    const login = (from: string) =>
      fetch(`${address}/api/login`, { method: 'POST', headers: { 'x-forwarded-for': from } })
    const statuses: number[] = []
    for (let i = 0; i < 7; i++) statuses.push((await login('192.0.2.1')).status)
    assert.equal(statuses, [200, 200, 200, 200, 200, 429, 429])
    assert.is(await (await login('192.0.2.2')).text(), '4 tries left\n')
    assert.equal(await (await get('/api/users/alice', '192.0.2.3')).json(), { id: 'alice', left: 9 })
    assert.equal(await (await get('/api/users/alice', '192.0.2.4')).json(), { id: 'alice', left: 8 })
    const all = await get('/api/all', '192.0.2.5')
    assert.match(all.headers.get('RateLimit')!, 'r=99')
    assert.equal(await all.json(), { native: 'addon', remaining: 8 })
    const hello = await get('/api/hello', '192.0.2.6')
    // By proxy.ts, and by the handler itself.
    assert.match(hello.headers.get('RateLimit')!, 'r=99')
    assert.equal(await hello.json(), { hello: 'world' })
    const shown: string[] = []
    for (let i = 0; i < 4; i++) {
      shown.push(/welcome|later/.exec(await (await get('/limited', '192.0.2.7')).text())![0])
    }
    assert.equal(shown, ['welcome', 'welcome', 'welcome', 'later'])
    assert.match(await (await get('/limited', '192.0.2.8')).text(), /welcome/)
    const refused = await Promise.all(Array.from({ length: 120 }, () => get('/api/none', '192.0.2.9')))
    assert.is(refused.filter(({ status }) => status === 429).length, 20)
  } finally {
    server.kill()
    await once(server, 'exit')
  }
})

test('a build for the edge runtime fails, and says what to use', async () => {
  write(
    'app/api/edge/route.ts',
    `import { rateLimit } from 'millrace/web'
    export const runtime = 'edge'
    export const GET = rateLimit({ limit: 5, window: '1m', key: () => 'all' }, () => new Response('hello'))`,
  )
  const { code, out, err } = await build()
  assert.is(code, 1)
  assert.match(
    `${out}${err}`,
    /millrace needs the modules of Node\.js .* In Next\.js, use the Node\.js runtime/,
  )
})

/** The server's first lines say where it listens. */
async function addressIn(out: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(out)) {
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? /http:\/\/localhost:\d+/.exec(line) ?? []
    if (address !== undefined) {
      out.resume()
      return address.replace('localhost', '127.0.0.1')
    }
  }
  throw new Error('the server ended')
}

test.run()
