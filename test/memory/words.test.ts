import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

/** How often `act` calls each of these operations. */
function countCalls<Name extends 'load' | 'compareExchange'>(
  names: readonly Name[],
  act: () => void,
): number[] {
  const atomics = Atomics as unknown as Record<Name, (...words: unknown[]) => unknown>
  const originals = names.map((name) => atomics[name])
  const calls = names.map(() => 0)
  names.forEach((name, i) => {
    atomics[name] = (...words) => {
      calls[i]!++
      return originals[i]!(...words)
    }
  })
  try {
    act()
  } finally {
    names.forEach((name, i) => {
      atomics[name] = originals[i]!
    })
  }
  return calls
}

test('an admission is two compare-exchanges, and one atomic load where the processor does not keep reads in order', () => {
  const limiter = createLimiter({ limit: 1_000, window: '1m', maxKeys: 10, clock: { now: () => 1e6 } })
  assert.ok(limiter.check('a').allowed)
  const calls = countCalls(['load', 'compareExchange'], () => {
    for (let i = 0; i < 100; i++) assert.ok(limiter.check('a').allowed)
  })
  assert.equal(calls, [process.arch === 'x64' ? 0 : 100, 200])
})

test.run()
