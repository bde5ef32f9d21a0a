import { MillraceError } from 'millrace'
import { type MongoConfigOptions, mongoConfig } from 'millrace/config/mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const URL = 'mongodb://127.0.0.1:1/'

function refused(options: unknown, code: string, text: RegExp): void {
  try {
    mongoConfig(options as MongoConfigOptions)
  } catch (error) {
    assert.instance(error, MillraceError)
    assert.is((error as MillraceError).code, code)
    assert.match((error as MillraceError).message, text)
    return
  }
  assert.unreachable(`not refused: ${JSON.stringify(options)}`)
}

test('options are checked by name', () => {
  const wrong = (options: unknown, text: RegExp) => refused(options, 'ERR_MILLRACE_INVALID_OPTION', text)
  wrong(undefined, /options/)
  wrong({}, /client: .*MongoClient/)
  wrong({ client: {} }, /client: .*MongoClient/)
  wrong({ url: URL, client: { db() {}, close() {} } }, /no client beside url/)
  wrong({ url: 7 }, /url/)
  wrong({ url: 'http://localhost' }, /url: .*scheme/i)
  wrong({ url: URL, table: 'x' }, /only client, url/)
  for (const database of ['', 'a.b', 'a b', 'a$', 'x'.repeat(64), 7])
    wrong({ url: URL, database }, /database/)
  for (const collection of ['', 'a$', 'system.x', '.a', 'a.', 'a..b', 'x'.repeat(121), 7])
    wrong({ url: URL, collection }, /collection/)
  for (const pollMs of [0, 9, 60_001, Number.NaN, '50']) wrong({ url: URL, pollMs }, /pollMs/)
  wrong({ url: URL, deadline: '2m' }, /deadline/)
  refused({ url: URL, deadline: 'soon' }, 'ERR_MILLRACE_INVALID_DURATION', /deadline/)
})

test('an error shows no password', () => {
  try {
    mongoConfig({ url: 'mongodb://bob:secret@host:port:1/' })
    assert.unreachable()
  } catch (error) {
    assert.not.match(String(error), /secret/)
    assert.is((error as MillraceError).value, 'mongodb://***@host:port:1/')
  }
})

test('the delay of a watch is that of polls, but at least that of a stream', async () => {
  for (const [pollMs, delay] of [
    [undefined, 100],
    [10, 100],
    [500, 1000],
  ] as const) {
    const store = mongoConfig({ url: URL, ...(pollMs && { pollMs }) })
    assert.is(store.watchDelayMs, delay)
    assert.is(store.kind, 'mongodb')
    await store.close()
  }
})

test.run()
