// Groups with members whose counts are in files.
// run: addon
import { createLimiter, group, openLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { assertIsError, settled } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()
const options = (file: string) => ({ limit: 5, window: '1h', maxKeys: 100, shared: { file } }) as const
const KEYS = { account: 'alice', address: 'home' }

test('a member in a file charges, refuses and takes back, and another limiter on the file sees it', async () => {
  const file = at('account')
  const byAccount = await openLimiter(options(file))
  const byAddress = createLimiter({ limit: 3, window: '1h', maxKeys: 100 })
  const both = group({ account: byAccount, address: byAddress })
  const decision = both.check(KEYS, 3)
  assert.ok(decision.allowed)
  assert.equal([both.check(KEYS).member, both.check(KEYS, 4).member], ['address', 'address'])
  const other = await openLimiter(options(file))
  assert.equal([other.usage('alice'), both.refund(decision), other.usage('alice')], [3, 3, 0])
  assert.is(both.reserve(KEYS, 3).commit(1), -2)
  assert.is(other.usage('alice'), 1)
  await Promise.all([byAccount.close(), other.close()])
})

test('a file that is unmapped while another member decides is not accessed any more', async () => {
  const byAccount = createLimiter(options(at('closed')))
  let isArmed = false
  const clock = {
    now() {
      if (!isArmed) return 1e6
      void byAccount.close()
      throw new Error('stopped')
    },
  }
  const byAddress = createLimiter({ limit: 3, window: '1h', maxKeys: 100, clock })
  const both = group({ account: byAccount, address: byAddress })
  isArmed = true
  assert.throws(() => both.check(KEYS), 'stopped')
  isArmed = false
  const again = createLimiter(options(at('closed')))
  assert.is(again.usage('alice'), 1, 'the charge stays, and expires')
  await again.close()
})

test('the memory of a pool on a file is not accessed after the pool is closed', async () => {
  const file = at('pool')
  const byAccount = createLimiter({ ...options(file), engine: 'pool' })
  const byAddress = createLimiter({ limit: 1, window: '1h', maxKeys: 100, engine: 'pool' })
  const both = group({ account: byAccount, address: byAddress })
  assert.ok((await both.check(KEYS)).allowed)
  for (let i = 0; i < 4; i++) await both.check(KEYS)
  const calls = Array.from({ length: 4 }, () => settled(both.check(KEYS)))
  await byAccount.close()
  for (const outcome of await Promise.all(calls)) {
    if (outcome.status === 'rejected') assertIsError(outcome.reason, 'ERR_MILLRACE_CLOSED', 'members.account')
    else assert.is(outcome.value.member, 'address')
  }
  await byAddress.close()
  const again = createLimiter(options(file))
  assert.ok(again.usage('alice') >= 1)
  await again.close()
})

test.run()
