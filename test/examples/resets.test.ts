// run: full
// Every program of the pages and of examples/ that has a server goes on when its clients reset their connections, at
// whichever step.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { blocks, runModule } from '../package/blocks.js'
import { readText, root } from '../package/root.js'
import { example, withServers } from './program.js'
import { resetAtEachStep } from './resets.js'

const PRELOADED = fileURLToPath(new URL('reset-clients.js', import.meta.url))
const HAS_SERVER = /\blisten\(|\bserve\(/
/** These start and end servers of their own, and print no address. */
const OWN_CLIENTS = ['cluster.mjs', 'crawler.mjs', 'outgoing-fleet.mjs']

/** What to ask of a program: each path that it names, and two methods. */
function requestsOf(code: string): string[] {
  const paths = new Set([
    '/',
    ...[...code.matchAll(/['"`](\/[\w-]+(?:\/[\w-]+)*)['"`]/g)].map(([, path]) => path!),
  ])
  return [...paths].flatMap((path) => [`GET ${path}`, `POST ${path}`])
}

const servers = blocks.filter(({ code }) => HAS_SERVER.test(code) && !code.includes('node:cluster'))

for (const { code, page, line } of servers) {
  test(`the server at line ${line} of ${page} outlives clients that reset`, async () => {
    // The second round is refused by limits of 2.
    const own = code.replace(/\b(limit|max|points): [\d_]+/g, '$1: 2')
    const env = { ...process.env, REQUESTS: JSON.stringify(requestsOf(code)) }
    const name = `resets-${page.replaceAll('/', '-')}-${line}`
    const { status, output } = await runModule(name, own, env, ['--import', PRELOADED])
    assert.is(status, 0, output)
    assert.match(output, /^survived$/m)
  })
}

test('the pages have servers, one of them with a listener of upgrades', () => {
  assert.ok(servers.length >= 10, `${servers.length}`)
  assert.ok(servers.some(({ code }) => code.includes("server.on('upgrade'")))
})

const examples = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.mjs') && !OWN_CLIENTS.includes(file))
  .map((file) => ({ file, code: readText(`examples/${file}`) }))
  .filter(({ code }) => HAS_SERVER.test(code))

const folder = mkdtempSync(join(tmpdir(), 'millrace-resets-'))
test.after(() => rmSync(folder, { recursive: true }))

for (const { file, code } of examples) {
  test(`examples/${file} outlives clients that reset, and closes`, () =>
    withServers(
      example(file),
      1,
      ([url]) => resetAtEachStep(Number(new URL(url!).port), requestsOf(code).slice(0, 4), 2),
      'SIGTERM',
      { mayComplain: true, env: { LIMITS: join(folder, 'limits') } }, // frameworks log what was aborted
    ))
}

test.run()
