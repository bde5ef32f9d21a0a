// run: typescript, modules
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type IpKeyOptions, ipKey } from '#millrace/http/addresses/ip-key.js'

const warnings: Error[] = []
process.on('warning', (warning) => warnings.push(warning))

/** The warnings that this request has raised. They are emitted in the next tick. */
async function warningsOf(address: string, headers: Record<string, string>, options: IpKeyOptions = {}) {
  warnings.length = 0
  const request = { headers, socket: { remoteAddress: address } }
  const key = ipKey(options)
  key(request)
  key(request)
  await new Promise((resolve) => setImmediate(resolve))
  return warnings.map((warning) => [warning.name, (warning as NodeJS.ErrnoException).code, warning.message])
}

const behind = { 'x-forwarded-for': '192.0.2.1' }

test('no warning without a header, from outside, or if it was said what to trust', async () => {
  assert.equal(await warningsOf('127.0.0.1', { host: 'localhost' }), [])
  for (const outside of ['203.0.113.7', '2001:db8::1', '100.128.0.1', '::ffff:8.8.8.8']) {
    assert.equal(await warningsOf(outside, behind), [])
  }
  for (const trustProxy of [0, 1, [], ['203.0.113.7'], () => false]) {
    assert.equal(await warningsOf('127.0.0.1', behind, { trustProxy }), [])
  }
})

test('a connection from inside with a header of a proxy raises one warning, once', async () => {
  const [warning, ...more] = await warningsOf('::ffff:10.1.2.3', { forwarded: 'for=192.0.2.1' })
  assert.equal(more, [])
  const [name, code, message] = warning!
  assert.equal([name, code], ['MillraceWarning', 'MILLRACE_UNDECLARED_PROXY'])
  for (const part of ['10.1.2.3', 'Forwarded', 'trustProxy: 1', '0']) assert.match(message!, part)
  for (const inside of ['127.0.0.1', '::1', 'fd00::1', 'fe80::1', '100.64.0.1']) {
    assert.equal(await warningsOf(inside, behind), [])
  }
})

test.run()
