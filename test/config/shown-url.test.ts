// A password never stands in a message, wherever a URL has it.
// run: modules
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shownUrl } from '#millrace/config/store-address.js'

for (const [url, shown] of [
  ['redis://127.0.0.1:6379/1', 'redis://127.0.0.1:6379/1'],
  ['redis://user:secret@host:6379', 'redis://user:***@host:6379'],
  ['redis://:secret@host', 'redis://:***@host'],
  ['redis://user:se/cr?et@host:6379/1', 'redis://user:***@host:6379/1'],
  ['redis://user:12/34@host', 'redis://user:***@host'],
  ['redis://h:1/0?prefix=a:b@c', 'redis://h:1/0?prefix=a:b@c'],
  ['mongodb://a:1,b:2/db?d=e@f', 'mongodb://a:1,b:2/db?d=e@f'],
  ['redis://user:se@cret@host', 'redis://user:***@host'],
  ['redis://host/1?password=secret', 'redis://host/1?password=***'],
  ['redis://host?prefix=a&PASSWORD=se%20cret&x=1', 'redis://host?prefix=a&PASSWORD=***&x=1'],
  ['mongodb://user:secret@one,two/db?authSource=admin', 'mongodb://user:***@one,two/db?authSource=admin'],
  ['file:/etc/policies.json', 'file:/etc/policies.json'],
] as const) {
  test(`${shown} is shown of a URL`, () => {
    assert.is(shownUrl(url), shown)
  })
}

test.run()
