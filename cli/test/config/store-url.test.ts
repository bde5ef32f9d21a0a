import { shownUrl } from 'millrace/internal'
import { missingPackage } from 'millrace-cli/dist/config/open-store.js'
import { storeAddress } from 'millrace-cli/dist/config/store-url.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'

test('the URL of a store says where it is', () => {
  const addresses: [string, object][] = [
    ['lmdb:./limits', { kind: 'lmdb', path: './limits' }],
    ['lmdb:/var/limits', { kind: 'lmdb', path: '/var/limits' }],
    ['lmdb:///var/my limits', { kind: 'lmdb', path: '/var/my limits' }],
    ['file:policies.yaml', { kind: 'file', path: 'policies.yaml' }],
    ['redis://localhost', { kind: 'redis', url: 'redis://localhost' }],
    [
      'rediss://u:p%40@h:6380/2?prefix=my:limits',
      { kind: 'redis', url: 'rediss://u:p%40@h:6380/2', prefix: 'my:limits' },
    ],
    ['dynamodb://eu-central-1/limits', { kind: 'dynamodb', region: 'eu-central-1', table: 'limits' }],
    [
      'dynamodb://local/limits?endpoint=http://localhost:8000',
      { kind: 'dynamodb', region: 'local', table: 'limits', endpoint: 'http://localhost:8000' },
    ],
    ['mongodb://localhost/app', { kind: 'mongodb', url: 'mongodb://localhost/app', database: 'app' }],
    [
      'mongodb://u:p@a:1,b:2/app?replicaSet=rs&collection=limits',
      {
        kind: 'mongodb',
        url: 'mongodb://u:p@a:1,b:2/app?replicaSet=rs',
        database: 'app',
        collection: 'limits',
      },
    ],
    ['mongodb+srv://c.example/app', { kind: 'mongodb', url: 'mongodb+srv://c.example/app', database: 'app' }],
  ]
  for (const [url, address] of addresses) assert.equal(storeAddress(url), address, url)
})

test('a wrong URL is an error that says what would be right', () => {
  const mistakes: [string, RegExp][] = [
    ['', /expected lmdb:PATH, .* got ""/],
    ['limits', /expected lmdb:PATH/],
    ['memcached://x', /expected lmdb:PATH/],
    ['lmdb:', /expected lmdb:PATH, such as lmdb:.\/limits, got "lmdb:"/],
    ['lmdb://limits', /expected lmdb:PATH/],
    ['file:', /expected file:PATH of a JSON or YAML file, such as file:.\/policies.yaml/],
    ['redis:', /expected redis:\/\/HOST:PORT\/DATABASE\?prefix=PREFIX, such as redis:\/\/localhost:6379\/0/],
    ['redis://h/zero', /expected redis:/],
    ['redis://h:99999', /expected redis:/],
    ['redis://h?db=3', /expected only prefix after the question mark/],
    ['redis://h?prefix=', /expected only prefix/],
    ['dynamodb://eu-central-1', /expected dynamodb:\/\/REGION\/TABLE\?endpoint=URL, such as/],
    ['dynamodb://eu-central-1/a/b', /expected dynamodb:/],
    ['dynamodb://local/a?endpoint=localhost', /expected an endpoint such as http:\/\/localhost:8000 in/],
    ['mongodb://localhost', /expected mongodb:\/\/HOST:PORT\/DATABASE\?collection=NAME, such as/],
  ]
  for (const [url, message] of mistakes) assert.throws(() => storeAddress(url), message, url)
})

test('no message has the password of a URL', async () => {
  assert.is(shownUrl('redis://user:secret@h:1/0'), 'redis://user:***@h:1/0')
  assert.is(shownUrl('mongodb://u:se:cr@et@a,b/c?d=e@f'), 'mongodb://u:***@a,b/c?d=e@f')
  assert.is(shownUrl('redis://h:1/0?prefix=a:b@c'), 'redis://h:1/0?prefix=a:b@c')
  const urls = [
    'redis://user:secret@127.0.0.1:1/0',
    'redis://user:secret@127.0.0.1:1/x',
    'mongodb://user:secret@127.0.0.1:1/app',
    'mongodb://user:secret@127.0.0.1:1',
  ]
  for (const url of urls) {
    const { code, out, err } = await ran(['config', 'get', 'a', '-s', url])
    assert.ok(code > 0)
    assert.is(out, '')
    assert.match(err, /^millrace: [^\n]+\n$/)
    assert.not.match(err, 'secret')
  }
})

test('the package that is missing is known from the errors of import and require', async () => {
  const failure = (act: () => Promise<unknown>) =>
    act().then(
      () => assert.unreachable(),
      (error) => error,
    )
  const name = 'no-such-package-of-millrace'
  assert.is(missingPackage(await failure(() => import(name))), name)
  const { createRequire } = await import('node:module')
  assert.is(missingPackage(await failure(async () => createRequire(import.meta.url)(name))), name)
  assert.is(missingPackage(await failure(async () => createRequire(import.meta.url)('./none.js'))), undefined)
  assert.is(missingPackage(new Error(`Cannot find module '${name}'`)), undefined)
})

test.run()
