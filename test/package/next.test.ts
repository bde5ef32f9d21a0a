// run: addon, long
// An app of the newest Next.js with the files of docs/how-to/http-frameworks.md: it limits, with all of the package.
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
const [, section = ''] =
  /^## Next\.js 16\n([\s\S]*?)^## /m.exec(readText('docs/how-to/http-frameworks.md')) ?? []
const pages = [...section.matchAll(/^```js\n\/\/ (\S+)\n([\s\S]*?)^```/gm)]
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

test('an app limits in proxy.js and in a route, with the addon and on a pool, from a standalone folder', async () => {
  assert.equal(
    pages.map(([, path]) => path),
    ['app/api/login/route.js', 'proxy.js', 'next.config.mjs'],
  )
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }
  const modules = ['next@16', 'react@19', 'react-dom@19', await pack(root, app)]
  const installed = await run('npm', ['install', '--no-audit', '--no-fund', ...modules], app, env)
  assert.is(installed.code, 0, installed.err)
  const built = await runNode(['node_modules/next/dist/bin/next', 'build'], app, env)
  assert.is(built.code, 0, `${built.out}${built.err}`)
  cpSync(join(app, '.next/standalone'), deployed, { recursive: true })

  const server = spawn(process.execPath, ['server.js'], {
    cwd: deployed,
    env: { ...env, PORT: '0', HOSTNAME: '127.0.0.1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const address = await addressIn(server.stdout)
    const login = (key: string) =>
      fetch(`${address}/api/login`, { method: 'POST', headers: { 'x-api-key': key } })
    const statuses: number[] = []
    for (let i = 0; i < 7; i++) statuses.push((await login('one')).status)
    assert.equal(statuses, [200, 200, 200, 200, 200, 429, 429])
    assert.is(await (await login('two')).text(), '4 tries left\n')
    const all = await fetch(`${address}/api/all`)
    assert.match(all.headers.get('RateLimit')!, 'r=99')
    assert.equal(await all.json(), { native: 'addon', remaining: 8 })
    const refused = await Promise.all(Array.from({ length: 120 }, () => fetch(`${address}/api/none`)))
    assert.is(refused.filter(({ status }) => status === 429).length, 21)
  } finally {
    server.kill()
    await once(server, 'exit')
  }
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
