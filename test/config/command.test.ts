// `millrace config` on stores of servers. Those of files are tested in cli/test/config.
import { Readable, Writable } from 'node:stream'
import { Redis } from 'ioredis'
import { dynamoConfig } from 'millrace/config/dynamodb'
import { run } from 'millrace-cli/dist/program.js'
import { MongoClient } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startRedis } from '../redis/servers.js'
import { redisTest } from '../redis/skip.js'
import { clientOptions, startDynalite } from './dynalite.js'
import { MAJORITY, startServers } from './mongodb-server.js'

class Text extends Writable {
  text = ''

  override _write(chunk: string, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk
    done()
  }
}

/** With `columns`, standard error is a terminal of this width. */
async function ran(args: string[], input: string[] = [], columns?: number) {
  const [stdout, stderr] = [new Text(), new Text()]
  if (columns !== undefined) Object.assign(stderr, { isTTY: true, columns })
  const stdin = Readable.from(
    input.map((part) => Buffer.from(part)),
    { objectMode: false },
  )
  const code = await run(['config', ...args], { stdin, stdout, stderr })
  return { code, out: stdout.text, err: stderr.text }
}

/** Every subcommand on an empty store. */
async function tryAll(url: string): Promise<void> {
  const on = async (...args: string[]) => {
    const { code, out, err } = await ran([...args, '--store', url])
    assert.equal([code, err], [0, ''], args.join(' '))
    return out
  }
  assert.match(
    await on('set', 'user:*', '-r', '10/1s', '-r', '1000/1h'),
    /^user:\*: 10\/1s; 1000\/1h, version \d+\n$/,
  )
  assert.match(await on('get', 'user:7'), /^user:7 has the policy of user:\*, version \d+\n/)
  const lines = Array.from({ length: 90 }, (_, i) => {
    return `{"key":"key:${String(i).padStart(2, '0')}","policy":{"limit":${i + 1},"window":"1m"}}\n`
  })
  const imported = await ran(['import', '-', '-s', url], lines)
  assert.equal(imported, { code: 0, out: '90 policies imported\n', err: '' })
  assert.is(await on('export', '--prefix', 'key:'), lines.join(''))
  assert.match(await on('list', '-n', '2'), 'The first 2 policies.')
  assert.match(await on('validate'), 'all 91 documents are policies\n')
  const { version } = JSON.parse(await on('get', 'key:07', '--json'))
  const conflict = await ran(['delete', 'key:07', '--if-version', '1', '-s', url])
  assert.is(conflict.code, 1)
  assert.match(conflict.err, `expected version 1 of this key's policy, got ${version}`)
  assert.is(await on('delete', 'key:07', '--if-version', String(version)), 'deleted key:07\n')
}

redisTest('every subcommand works on Redis, which may have a password', async () => {
  const server = await startRedis({ args: ['--requirepass', 'secret'] })
  try {
    await tryAll(`redis://:secret@127.0.0.1:${server.port}/3?prefix=limits`)
    const client = new Redis(`redis://:secret@127.0.0.1:${server.port}/3`)
    assert.ok((await client.keys('{limits}*')).length > 80)
    await client.quit()
    const { code, err } = await ran(['list', '-s', `redis://:wrong@127.0.0.1:${server.port}/3`])
    assert.is(code, 1)
    assert.match(err, `millrace: redis://:***@127.0.0.1:${server.port}/3: WRONGPASS`)
    const other = await ran(['list', '-s', `redis://:secret@127.0.0.1:${server.port}/3?prefix={`])
    assert.is(other.code, 2)
    assert.match(other.err, /^millrace: --store: prefix: expected .*, got "\{"\n$/)
  } finally {
    await server.stop()
  }
})

redisTest('an import that a store ends tells how far it came', async () => {
  const server = await startRedis({ args: ['--maxmemory', '1'] })
  try {
    const lines = ['{"key":"a","policy":{"limit":5,"window":"1m"}}']
    const { code, out, err } = await ran(['import', '-', '-s', `redis://127.0.0.1:${server.port}`], lines)
    assert.equal([code, out], [1, ''])
    assert.match(err, /^millrace: 0 of 1 policies were imported, and maybe some of the next: redis: .*OOM/)
  } finally {
    await server.stop()
  }
})

redisTest('validate and export name what is no policy', async () => {
  const server = await startRedis()
  const client = new Redis(server.port)
  const url = `redis://127.0.0.1:${server.port}`
  try {
    await ran(['set', 'a', '-l', '5', '-w', '1m', '-s', url])
    await ran(['set', 'b', '-l', '5', '-w', '1m', '-s', url])
    const [name] = await client.keys('*:b')
    await client.set(name!, '{"limit":-1,"window":"1m"}')
    const found = await ran(['validate', '-s', url])
    assert.is(found.code, 1)
    assert.match(found.out, /^b: limit: expected an integer .*, got -1\n$/)
    assert.is(found.err, 'millrace: 1 of 2 documents are no policies\n')
    assert.is(JSON.parse((await ran(['validate', '--json', '-s', url])).out).key, 'b')
    const exported = await ran(['export', '-s', url])
    assert.equal([exported.code, exported.out], [1, '{"key":"a","policy":{"limit":5,"window":"1m"}}\n'])
    assert.match(exported.err, /^left out: b: limit: expected .*\nmillrace: 1 documents? are no policies/)
    assert.match((await ran(['export', '-s', url], [], 60)).err, / 100 %, 2 of 2/)
    const { code, err } = await ran(['get', 'b', '-s', url])
    assert.is(code, 1)
    assert.match(err, 'millrace: b: limit: expected an integer')
    assert.match((await ran(['list', '-s', url])).out, '│ b   │ no policy: limit: expected')
    assert.is((await ran(['set', 'b', '-l', '6', '-w', '1m', '-s', url])).code, 0)
    assert.is((await ran(['validate', '-s', url])).code, 0)
  } finally {
    await client.quit()
    await server.stop()
  }
})

redisTest('an export of a store that refuses only to count has no bar', async () => {
  const server = await startRedis()
  const url = `redis://127.0.0.1:${server.port}`
  const client = new Redis(server.port)
  try {
    await ran(['set', 'a', '-l', '5', '-w', '1m', '-s', url])
    await client.call('ACL', 'SETUSER', 'default', '-zlexcount')
    const { code, out, err } = await ran(['export', '-s', url], [], 60)
    assert.equal([code, out], [0, '{"key":"a","policy":{"limit":5,"window":"1m"}}\n'])
    assert.match(err, /counting policies.*1 policies written/)
    await client.call('ACL', 'SETUSER', 'default', '-zrangebylex')
    const refused = await ran(['export', '-s', url], [], 60)
    assert.equal([refused.code, refused.out], [1, ''])
    assert.match(refused.err, /millrace: redis: .*NOPERM[^\n]*zrangebylex[^\n]*\n$/)
  } finally {
    await client.quit()
    await server.stop()
  }
})

test('every subcommand works on DynamoDB', async () => {
  const server = await startDynalite()
  const { endpoint, region, credentials } = clientOptions(server.port)
  process.env.AWS_ACCESS_KEY_ID = credentials.accessKeyId
  process.env.AWS_SECRET_ACCESS_KEY = credentials.secretAccessKey
  try {
    const url = `dynamodb://${region}/limits?endpoint=${endpoint}`
    const missing = await ran(['set', 'a', '-r', '1/1s', '-s', url])
    assert.is(missing.code, 1)
    assert.match(missing.err, /^millrace: dynamodb: expected .*\n$/)
    const store = dynamoConfig({ table: 'limits', region, endpoint })
    await store.createTable()
    await store.close()
    await tryAll(url)
  } finally {
    await server.stop()
  }
})

test('a server that is down is an error with its address', async () => {
  for (const url of ['dynamodb://eu-central-1/limits?endpoint=http://127.0.0.1:1', 'redis://127.0.0.1:1/0']) {
    const { code, out, err } = await ran(['set', 'a', '-r', '1/1s', '-s', url])
    assert.equal([code, out], [1, ''])
    assert.match(err, /^millrace: [^\n]*127\.0\.0\.1:1[^\n]*\n$/)
  }
})

const servers = await startServers()
test.after(async () => {
  for (const server of servers) await server.stop()
})

for (const { name, url } of servers)
  test(`${name}: every subcommand works`, async () => {
    const address = new URL(url)
    address.pathname = `/millrace-${process.pid}`
    address.searchParams.set('collection', 'limits')
    await tryAll(address.href)
    const client = new MongoClient(url)
    await client.db(address.pathname.slice(1)).dropDatabase(MAJORITY)
    await client.close()
  })

redisTest.run()
