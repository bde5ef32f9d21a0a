// A test that imports the package and then fakes the timers of its process stops nothing, also where a module is loaded at
// its first use under fake timers. Each case is a process of its own: what another test has loaded would hide the fault.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runModule } from './blocks.js'

const FAKED = `
import { subscribe } from 'node:diagnostics_channel'
import { createLimiter, manualClock } from 'millrace'
import { createBackendLimiter } from 'millrace/backend'
const rule = { limit: 5, window: '1h', maxKeys: 100 }
Object.assign(globalThis, { queueMicrotask() {}, setImmediate() {}, setTimeout() {}, clearTimeout() {} })
`
const CASES = {
  'a pool decides': `
    const pool = createLimiter({ ...rule, engine: 'pool' })
    console.log((await pool.check('a')).remaining)
    await pool.close()`,
  'a change wakes all that wait': `
    const limiter = createLimiter({ ...rule, limit: 1, maxKeys: 1_000, clock: manualClock() })
    for (let key = 0; key < 200; key++) limiter.check('k' + key)
    const waits = Array.from({ length: 200 }, (_, key) => limiter.wait('k' + key))
    limiter.update('default', { limit: 2 })
    const all = await Promise.all(waits)
    console.log(all.filter(({ allowed }) => allowed).length === 200 ? 4 : 'not all')`,
  'evictions are published': `
    const heard = new Promise((resolve) => subscribe('millrace:evicted-live', resolve))
    const limiter = createLimiter({ ...rule, maxKeys: 20 })
    for (let key = 0; key < 1_000; key++) limiter.check('k' + key)
    console.log((await heard).count > 0 ? 4 : 'none')`,
  'an outage is told': `
    const values = { read: () => Promise.reject(new Error('down')), swap: async () => true }
    const told = new Promise((onOutageChange) => {
      const own = { limit: 5, window: '1h', values, source: 'own', prefix: 'p', onOutage: 'open', onOutageChange }
      void createBackendLimiter(own).check('a')
    })
    console.log((await told).state === 'outage' ? 4 : 'not told')
    process.exit()`,
} as const

for (const [what, code] of Object.entries(CASES))
  test(`under timers that are faked after the import, ${what}`, async () => {
    const { status, output } = await runModule(`fake-${what.split(' ')[1]}`, FAKED + code)
    assert.match(output, /^4\n/, output)
    assert.is(status, 0)
  })

test.run()
