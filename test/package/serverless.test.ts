// run: typescript, long
// The adapters for AWS Lambda that docs/how-to/serverless.md names, with the events of AWS: `trustProxy: 1` finds the
// client in each. They are installed from npm.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startRedis } from '../redis/servers.js'
import { redisTest } from '../redis/skip.js'
import { pack, run, runNode } from './project.js'
import { readText, root } from './root.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-serverless-'))
test.after(() => rmSync(folder, { recursive: true }))

const PAGE = readText('docs/how-to/serverless.md')
/** The packages of the table, and their versions. */
const ADAPTERS = [...PAGE.matchAll(/`([\w@/-]+)` (\d+)[,\s]/g)]
  .map(([, name, version]) => `${name}@${version}`)
  .filter((name) => !name.startsWith('millrace'))

test('the page names the adapters', async () => {
  assert.equal([...new Set(ADAPTERS)].sort(), [
    '@codegenie/serverless-express@5',
    '@fastify/aws-lambda@6',
    'serverless-http@4',
  ])
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const modules = [
    'express@5',
    'fastify@5',
    'hono@4',
    'ioredis@6',
    ...new Set(ADAPTERS),
    await pack(root, folder),
  ]
  const installed = await run('npm', ['install', '--no-audit', '--no-fund', ...modules], folder)
  assert.is(installed.code, 0, installed.err)
  copyFileSync(join(root, 'test/package/serverless/events.mjs'), join(folder, 'events.mjs'))
})

test('each adapter with each event: a client is limited by its address', async () => {
  copyFileSync(join(root, 'test/package/serverless/adapters.mjs'), join(folder, 'adapters.mjs'))
  const { code, out, err } = await runNode(['adapters.mjs'], folder)
  assert.equal([code, err], [0, ''])
  const found = JSON.parse(out) as Record<string, number[]>
  assert.is(Object.keys(found).length, 15)
  for (const [name, statuses] of Object.entries(found)) assert.equal(statuses, [200, 200, 429, 200], name)
})

redisTest('the program of the page counts on Redis', async () => {
  const [, program = ''] = /^```js\n(import express[\s\S]*?)^```/m.exec(PAGE) ?? []
  const server = await startRedis()
  writeFileSync(
    join(folder, 'handler.mjs'),
    program.replace("prefix: 'api'", "deadline: '1m', prefix: 'api'"),
  )
  writeFileSync(
    join(folder, 'call.mjs'),
    `import { events } from './events.mjs'
    import { handler } from './handler.mjs'
    console.log((await handler(events.v2('192.0.2.1'), {})).body)
    process.exit()`,
  )
  const env = { ...process.env, REDIS_URL: `redis://127.0.0.1:${server.port}` }
  for (const left of [99, 98]) {
    const outcome = await runNode(['call.mjs'], folder, env) // an instance of its own
    assert.equal(outcome, { code: 0, out: `${left} requests left\n\n`, err: '' })
  }
  await server.stop()
})

test.run()
