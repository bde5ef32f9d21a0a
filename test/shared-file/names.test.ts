// A file belongs to one rule, by its name.
// run: addon
import { attachLimiter, createLimiter, type LimiterOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()
const open = (file: string, more: Partial<LimiterOptions> = {}) =>
  createLimiter({ limit: 5, window: '15m', maxKeys: 100, shared: { file }, ...more })

test('limiters with different names cannot share a file; the error has both names, and the limit stays', () => {
  const file = at('one')
  const byAccount = open(file, { name: 'account', limit: 5 })
  const { message } = assertRaises(
    () => open(file, { name: 'address', limit: 20 }),
    'ERR_MILLRACE_SHARED_MISMATCH',
    'name',
    file,
  )
  assert.match(message, /name 'account' .*"name 'address'"/)
  assert.is(byAccount.rule.limit, 5)
  void byAccount.close()
})

/** The login form of docs/how-to/login.md; the number of 30 wrong passwords that it checked. */
function guessesLookedAt(byAccount: ReturnType<typeof open>, byAddress: ReturnType<typeof open>): number {
  let looked = 0
  for (let guess = 0; guess < 30; guess++) {
    const tries = [byAccount.check('alice'), byAddress.check('192.0.2.1')] as const
    if (tries.every(({ allowed }) => allowed)) looked++
    else {
      byAccount.refund(tries[0])
      byAddress.refund(tries[1])
    }
  }
  return looked
}

test('a login form with one file per rule holds both limits; with one file for both it does not start', async () => {
  const account = { name: 'account', limit: 5 }
  const address = { name: 'address', limit: 20 }
  const byAccount = open(at('accounts'), account)
  const byAddress = open(at('addresses'), address)
  assert.is(guessesLookedAt(byAccount, byAddress), 5)
  await byAccount.close()
  assertRaises(() => open(at('accounts'), address), 'ERR_MILLRACE_SHARED_MISMATCH', 'name')
  await byAddress.close()
})

test('a file opens again with the same name: default, long, or with unusual characters', async () => {
  const long = 'n'.repeat(500)
  const names = ['default', 'a', 'ä', '🦊'.repeat(40), long, `${long}!`, '\ud800', '\udfff', 'a\0b', 'a\n"b"']
  for (const [i, name] of names.entries()) {
    const file = at(`name ${i}`)
    const first = open(file, { name })
    first.check('key', 2)
    await first.close()
    for (const other of names) {
      if (other === name) continue
      assertRaises(() => open(file, { name: other }), 'ERR_MILLRACE_SHARED_MISMATCH', 'name', file)
    }
    const again = open(file, { name })
    assert.is(again.usage('key'), 2)
    await again.close()
  }
})

test('error messages truncate long names and keep them on one line', () => {
  const made = open(at('shown'), { name: `first\n${'x'.repeat(300)}` })
  const { message } = assertRaises(() => open(at('shown')), 'ERR_MILLRACE_SHARED_MISMATCH', 'name')
  assert.match(message, /^name: expected name 'first\\nx{54}…' as in the file .*, got "name 'default'"$/)
  void made.close()
})

test('a mismatch lists the name with all other differences', () => {
  const made = open(at('both'), { name: 'account' })
  const act = () => open(at('both'), { name: 'address', edge: 'smooth' })
  const { message } = assertRaises(act, 'ERR_MILLRACE_SHARED_MISMATCH', 'name, edge')
  assert.match(message, /name 'account', edge strict .*"name 'address', edge smooth"/)
  void made.close()
})

test('a share of another rule does not open the file', async () => {
  const limiter = open(at('shared'), { name: 'account' })
  const share = { ...limiter.share(), rule: 'address' }
  const { message } = assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_SHARED_MISMATCH', 'name')
  assert.match(message, /'account'.*'address'/)
  const attached = attachLimiter(limiter.share())
  assert.is(attached.rule.name, 'account')
  await Promise.all([attached.close(), limiter.close()])
})

test.run()
