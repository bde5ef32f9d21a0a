// Decisions of a limiter in a file, read after its close without its memory.
import { createLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()

test('figures first read after close are bounds, and figures read before stay', async () => {
  const limiter = createLimiter({
    limit: 5,
    window: '1m',
    granularity: '1s',
    shared: { file: at('figures') },
  })
  const admitted = limiter.check('key', 2)
  const early = limiter.check('key', 2)
  const read = [early.remaining, early.resetMs]
  const refused = limiter.check('key', 3)
  const peeked = limiter.peek('key', 3)
  const fresh = limiter.check('new', 6)
  limiter.block('blocked', '1h')
  const blocked = limiter.check('blocked')
  const batch = limiter.checkMany(['key', 'key', 'new'], [3, 1, 6])
  await limiter.close()
  assert.equal([early.remaining, early.resetMs], read)
  assert.is(admitted.remaining, 3)
  assert.ok(admitted.resetMs > 60_000 && admitted.resetMs <= 61_000, `${admitted.resetMs}`)
  for (const decision of [refused, peeked]) {
    assert.is(decision.remaining, 1)
    assert.ok(decision.retryAfterMs > 59_000 && decision.retryAfterMs <= 61_000, `${decision.retryAfterMs}`)
    assert.ok(decision.resetMs > 59_000 && decision.resetMs <= 61_000, `${decision.resetMs}`)
  }
  assert.equal([fresh.remaining, fresh.retryAfterMs], [5, Number.POSITIVE_INFINITY])
  assert.ok(blocked.retryAfterMs > 3_599_000 && blocked.retryAfterMs < 3_600_063)
  assert.ok(batch.retryAfterMs(0) > 59_000 && batch.retryAfterMs(0) <= 61_000)
  assert.equal([batch.retryAfterMs(1), batch.retryAfterMs(2)], [0, Number.POSITIVE_INFINITY])
})

test.run()
