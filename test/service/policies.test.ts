// Policies in each configuration store behind two engines: what one is told, both go by.
// run: own
import { writeFileSync } from 'node:fs'
import { dynamoConfig } from 'millrace/config/dynamodb'
import * as assert from 'uvu/assert'
import { clientOptions, startDynalite } from '../config/dynalite.js'
import { startServers } from '../config/mongodb-server.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { type Engine, engine } from './engine.js'
import { temporaryFolder } from './folder.js'

/** A store that runs, and where it is. */
interface Place {
  readonly policies: string
  /** It tells of changes at once. Else engines ask again after a minute. */
  readonly isWatched?: false
  stop(): Promise<void> | void
}

function ofFolder(policies: (path: (name: string) => string) => string): Place {
  const folder = temporaryFolder()
  return { policies: policies(folder.path), stop: folder.remove }
}

async function onDynamo(): Promise<Place> {
  // Nobody checks them; without any the client looks for those of a machine in the cloud.
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
  const server = await startDynalite()
  const store = dynamoConfig({ table: 'policies', ...clientOptions(server.port) })
  await store.createTable()
  await store.close()
  const endpoint = encodeURIComponent(`http://${HOST}:${server.port}`)
  return {
    policies: `dynamodb://eu-central-1/policies?endpoint=${endpoint}`,
    isWatched: false,
    stop: server.stop,
  }
}

async function onMongo(i: number): Promise<Place> {
  const servers = await startServers()
  const { url } = servers[Math.min(i, servers.length - 1)]!
  const { href } = Object.assign(new URL(url), { pathname: `/service${i}` })
  return {
    policies: href,
    async stop() {
      for (const server of servers) await server.stop()
    },
  }
}

const PLACES: Readonly<Record<string, () => Place | Promise<Place>>> = {
  file: () =>
    ofFolder((path) => {
      writeFileSync(path('policies.yaml'), '{}')
      return `file:${path('policies.yaml')}`
    }),
  LMDB: () => ofFolder((path) => `lmdb:${path('policies')}`),
  async Redis() {
    const server = await startRedis()
    return { policies: `redis://${HOST}:${server.port}`, stop: () => server.stop() }
  },
  DynamoDB: onDynamo,
  'MongoDB, replica set': () => onMongo(0),
  'MongoDB, standalone': () => onMongo(1),
}

const TOKENS = [{ token: '0123456789abcdef', scopes: ['decide', 'read', 'change'] as const, name: 'all' }]
const ALL = { authorization: `Bearer ${TOKENS[0]!.token}` }

for (const [name, start] of Object.entries(PLACES)) {
  test(`${name}: policies are put, found, listed, replaced and deleted, and every engine goes by them`, async () => {
    const place = await start()
    const { policies, isWatched = true } = place
    const options = { limit: '100/1h', policies, tokens: TOKENS as never }
    const [one, other] = [await engine(options), await engine(options)]
    const change = (path: string, body: object, headers = {}) =>
      one.post(`/v1/policies/${path}`, body, { ...ALL, ...headers })
    /** Waits until both engines decide by a limit; without news of changes, until another one does. */
    const isInForce = async (key: string, limit: number) => {
      const asked = isWatched ? [one, other] : [await engine(options)]
      const decides = async (each: Engine) => (await each.post('/v1/peek', { key }, ALL)).body.limit === limit
      for (const each of asked) await poll(() => decides(each), `the limit ${limit} of ${key}`)
      if (!isWatched) await asked[0]!.close()
    }
    await isInForce('user:1', 100)
    const policy = (limit: number) => ({ limit, window: '1h' })
    const { body: put, headers } = await change('put', { key: 'user:1', policy: policy(7) })
    assert.is(headers.get('etag'), `"${put.version}"`)
    await change('put', { key: 'user:*', policy: policy(9) })
    await isInForce('user:1', 7)
    await isInForce('user:2', 9)
    await isInForce('other', 100)

    const found = await other.post('/v1/policies/get', { key: 'user:1' }, ALL)
    assert.is(found.body.policy.limit, 7)
    assert.is(found.body.version, put.version)
    const first = (await other.post('/v1/policies/list', { prefix: 'user:', n: 1 }, ALL)).body
    const next = (await other.post('/v1/policies/list', { prefix: 'user:', n: 2, after: first.next }, ALL))
      .body
    assert.equal(
      [...first.policies, ...next.policies].map(({ key }) => key),
      ['user:*', 'user:1'],
    )

    const stale = await change(
      'put',
      { key: 'user:1', policy: policy(8) },
      { 'if-match': `"${put.version + 1}"` },
    )
    assert.is(stale.body.code, 'ERR_MILLRACE_CONFIG_CONFLICT')
    const taken = await change('put', { key: 'user:1', policy: policy(8) }, { 'if-none-match': '*' })
    assert.is(taken.status, 412)
    const match = { 'if-match': `"${put.version}"` }
    assert.is((await change('put', { key: 'user:1', policy: policy(8) }, match)).status, 200)
    await isInForce('user:1', 8)

    assert.equal((await change('delete', { key: 'user:1' })).body, { deleted: true })
    assert.equal((await change('delete', { key: 'user:1' })).body, { deleted: false })
    await isInForce('user:1', 9)
    assert.is((await other.post('/v1/policies/get', { key: 'user:1' }, ALL)).status, 404)
    await one.close()
    await other.close()
    await place.stop()
  })
}

test.run()
