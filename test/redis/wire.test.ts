// run: typescript
// The connection by which tests look at a Redis.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startRedis } from './servers.js'
import { redisTest } from './skip.js'
import { connectWire, encode, parse, ReplyError } from './wire.js'

const REPLIES: readonly (readonly [string, unknown])[] = [
  ['+OK\r\n', 'OK'],
  ['+\r\n', ''],
  [':-42\r\n', -42],
  [':9007199254740993\r\n', 9007199254740993n],
  ['$-1\r\n', null],
  ['$0\r\n\r\n', Buffer.from('')],
  ['$4\r\n\r\n\r\n\r\n', Buffer.from('\r\n\r\n')],
  ['*-1\r\n', null],
  ['*0\r\n', []],
  ['*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n+b\r\n', [1, [Buffer.from('a'), []], 'b']],
]

for (const [text, reply] of REPLIES)
  test(`${JSON.stringify(text)} is parsed once all of it is there`, () => {
    const bytes = Buffer.from(text)
    for (let length = 0; length < bytes.length; length++)
      assert.is(parse(bytes.subarray(0, length), 0), undefined, `the first ${length} bytes`)
    assert.equal(parse(Buffer.from(`:1\r\n${text}:2\r\n`), 4), { reply, end: 4 + bytes.length })
  })

test('an error is a value with its code', () => {
  const { reply } = parse(Buffer.from('-MOVED 1 127.0.0.1:7000\r\n'), 0)!
  assert.instance(reply, ReplyError)
  assert.is((reply as ReplyError).code, 'MOVED')
  assert.is((reply as ReplyError).message, 'MOVED 1 127.0.0.1:7000')
})

test('a command is an array of bulk strings, whose lengths are of bytes', () => {
  assert.is(encode(['SET', 'é', 7]).toString(), '*3\r\n$3\r\nSET\r\n$2\r\né\r\n$1\r\n7\r\n')
})

redisTest('a server answers commands one by one and in pipelines', async () => {
  const redis = await startRedis()
  const wire = await connectWire(redis.port)
  const bytes = Buffer.from([0, 255, 13, 10])
  assert.is(await wire.send('SET', 'key', bytes), 'OK')
  assert.equal(await wire.sendRaw('GET', 'key'), bytes)
  const failed = await wire.send('INCR', 'key').catch((error) => error)
  assert.is(failed.code, 'ERR')
  const [count, error, list] = await wire.pipeline([
    ['INCRBY', 'n', 5],
    ['NO-SUCH-COMMAND'],
    ['EVAL', "return {1, {'a', false}, redis.error_reply('X inner')}", 0],
  ])
  assert.is(count, 5)
  assert.instance(error, ReplyError)
  assert.equal(list.slice(0, 2), [1, ['a', null]])
  assert.is(list[2].code, 'X')
  const pending = wire.send('BLPOP', 'list', 0).catch((error) => error)
  await redis.stop()
  assert.match(await pending.then((error) => error.message), 'closed')
  assert.match(await wire.send('PING').catch((error) => error.message), 'closed')
})

test.run()
