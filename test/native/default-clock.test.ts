// With the default clock the addon reads the time itself, once for 64 keys. A test cannot set that clock, so
// these tests judge admissions by readings before and after each batch.
import { createLimiter } from 'millrace'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import { ExactLog } from '../judge/exact-log.js'
import { isLeftOut, onSide } from './sides.js'

const test = isLeftOut() ? always.skip : always
const WINDOW_MS = 20
const LIMIT = 300
/** More than three groups of 64 keys, so that the addon takes at least two readings. */
const KEYS = 200
const BATCHES = 5_000

for (const edge of ['strict', 'smooth'] as const) {
  test(`${edge}: batches over windows of 20 ms never exceed the limit, and use it up repeatedly`, () => {
    const limiter = onSide('addon', () =>
      createLimiter({ limit: LIMIT, window: WINDOW_MS, granularity: 1, edge, maxKeys: 20 }),
    )
    // The smooth edge guarantees the limit for a window less a granule.
    const judgedMs = edge === 'smooth' ? WINDOW_MS - 1 : WINDOW_MS
    const packed = limiter.pack(new Array(KEYS).fill('key'))
    const log = new ExactLog()
    let all = 0
    const startMs = monotonicClock.now()
    for (let i = 0; i < BATCHES; i++) {
      const beforeMs = monotonicClock.now()
      const decided = limiter.checkMany(packed)
      const afterMs = monotonicClock.now()
      const admitted = decided.allowed.reduce((total, one) => total + one)
      all += admitted
      // Every batch that began in the last `judgedMs` was decided in this time.
      log.add(beforeMs, admitted)
      log.forget(afterMs - judgedMs)
      const used = log.used(afterMs, judgedMs)
      assert.ok(used <= LIMIT, `${used} in less than ${judgedMs} ms: ${log.describe(afterMs, judgedMs)}`)
      const refused = decided.allowed.lastIndexOf(0)
      if (refused < 0) continue
      const retryAfterMs = decided.retryAfterMs(refused)
      const most = WINDOW_MS + 2 + Math.ceil(monotonicClock.now() - beforeMs)
      assert.ok(retryAfterMs >= 1 && retryAfterMs <= most, `again in ${retryAfterMs} ms`)
    }
    const windows = Math.floor((monotonicClock.now() - startMs) / (WINDOW_MS + 1))
    assert.ok(all >= LIMIT, `${all} in ${windows} windows`)
  })
}

test('a new key in the middle of a batch is decided in order, by a present reading', () => {
  const limiter = onSide('addon', () => createLimiter({ limit: 2, window: '1h', maxKeys: 2_000 }))
  const names = Array.from({ length: 1_000 }, (_, i) => `key ${i % 700}`)
  for (let i = 0; i < 300; i += 3) limiter.check(`key ${i}`)
  const { allowed, remaining } = limiter.checkMany(names, 1, { remaining: true })
  assert.ok(allowed.every((one, i) => one === 1 || (i >= 700 && (i - 700) % 3 === 0)))
  for (let i = 0; i < 700; i++) assert.is(remaining![i], i < 300 && i % 3 === 0 ? 0 : 1, `key ${i}`)
  for (let i = 700; i < 1_000; i++) assert.is(allowed[i], (i - 700) % 3 === 0 ? 0 : 1, `key ${i - 700} again`)
  const { allowed: admitted, denied } = limiter.stats()
  assert.equal([admitted, denied], [100 + 1_000 - 100, 100])
})

always.run()
