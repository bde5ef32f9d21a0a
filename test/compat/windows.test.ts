// run: also-long, modules

import { suite, test } from 'uvu'
import * as assert from 'uvu/assert'
import { keyOf } from '#millrace/compat/keys.js'
import type { CompatOptions } from '#millrace/compat/options.js'
import type { SlidingCounts } from '#millrace/compat/sliding-counts.js'
import { countsOf, Windows } from '#millrace/compat/windows.js'
import fc from '../fast-check.js'
import { START_MS, withFakeDate } from './fake-date.js'

/** What happens to one key, and how much later. */
interface Step {
  readonly afterMs: number
  readonly action: 'hit' | 'take' | 'clear' | 'restart'
}

const WINDOW_MS = 10_000

const steps = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constantFrom(0, 1, WINDOW_MS - 1, WINDOW_MS), fc.nat(3000)),
    action: fc.oneof(
      { weight: 8, arbitrary: fc.constant('hit' as const) },
      fc.constantFrom('take' as const, 'clear' as const, 'restart' as const),
    ),
  }),
  { maxLength: 60 },
)

/** The same actions on windows that begin with the first hit, in plain variables. */
class FixedModel {
  #endMs = 0
  #hits = 0

  run(action: Step['action'], nowMs: number): void {
    if (action === 'clear') this.#endMs = 0
    const isOpen = nowMs < this.#endMs
    if (!isOpen) this.#hits = 0
    if (action === 'clear' || (action === 'restart' && !isOpen)) return
    if (!isOpen || action === 'restart') this.#endMs = nowMs + WINDOW_MS
    if (action === 'hit') this.#hits++
    if (action === 'take') this.#hits = Math.max(0, this.#hits - 1)
  }

  read(nowMs: number): [number, number] | undefined {
    return nowMs < this.#endMs ? [this.#hits, this.#endMs - nowMs] : undefined
  }
}

/** The same actions on a list of the admitted hits. Hits that are refused are not in it. */
class SlidingModel {
  #admitted: number[] = []
  /** When the window that an admission opened ends. */
  #endMs = 0
  /** When the window that a refusal opened ends. */
  #refusedEndMs = 0
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  run(action: Step['action'], nowMs: number): void {
    this.#admitted = this.#inWindow(nowMs)
    if (action === 'clear') this.#admitted = []
    if (action === 'clear') this.#endMs = this.#refusedEndMs = 0
    if (action === 'hit') this.#hit(nowMs)
    if (action === 'restart' && nowMs < this.#refusedEndMs) this.#refusedEndMs = nowMs + WINDOW_MS
    if (action === 'restart' && this.#admitted.length > 0) this.#endMs = nowMs + WINDOW_MS
    if (action === 'restart') this.#admitted = this.#admitted.map(() => nowMs)
  }

  read(nowMs: number): [number, number] | undefined {
    const left = this.#inWindow(nowMs)
    if (left.length === 0) return undefined
    const isRefused = left.length === this.#limit && nowMs < this.#refusedEndMs
    const isOpen = nowMs < this.#endMs && !isRefused
    return [left.length, isOpen ? this.#endMs - nowMs : left[0]! + WINDOW_MS - nowMs]
  }

  #hit(nowMs: number): void {
    if (this.#admitted.length === this.#limit) {
      if (nowMs >= this.#refusedEndMs) this.#refusedEndMs = nowMs + WINDOW_MS
      return
    }
    this.#admitted.push(nowMs)
    if (this.#admitted.length === 1) this.#refusedEndMs = 0
    if (nowMs >= this.#endMs) this.#endMs = nowMs + WINDOW_MS
  }

  #inWindow(nowMs: number): number[] {
    return this.#admitted.filter((ms) => ms > nowMs - WINDOW_MS)
  }
}

async function compare(
  options: CompatOptions,
  limit: number,
  model: FixedModel | SlidingModel,
  actions: readonly Step[],
): Promise<void> {
  await withFakeDate(async (date) => {
    const windows = new Windows(countsOf, { ...options, maxKeys: 16 })
    const counts = windows.of(WINDOW_MS)
    const shown = (): [number, number] | undefined => {
      windows.clock.read()
      const count = counts.read('key', limit)
      if (count === undefined) return undefined
      const isSliding = model instanceof SlidingModel // whose refused hits are tested below
      return [isSliding ? Math.min(limit, count.hits) : count.hits, count.resetMs]
    }
    for (const { afterMs, action } of actions) {
      date.tick(afterMs)
      assert.equal(shown(), model.read(Date.now()), `before ${action}`)
      if (action === 'hit') counts.hit('key', limit)
      if (action === 'take') counts.take('key', limit, 1)
      if (action === 'clear') counts.clear('key')
      if (action === 'restart') counts.restart('key', limit)
      model.run(action, Date.now())
      assert.equal(shown(), model.read(Date.now()), `after ${action}`)
    }
    await windows.close()
  })
}

const fixed = suite('a fixed window')

fixed('counts as a model does, to the millisecond', async () => {
  await fc.assert(
    fc.asyncProperty(steps, (actions) =>
      compare({ algorithm: 'fixed-window' }, 5, new FixedModel(), actions),
    ),
    { numRuns: 60 },
  )
})

const OPTIONS: CompatOptions[] = [{}, { algorithm: 'fixed-window' }, { maxLogLimit: 0 }]

for (const options of OPTIONS) {
  const each = suite(`windows with ${JSON.stringify(options)}`)

  each('hits beyond the limit go on rising, and begin at 1 after the window', () =>
    withFakeDate((date) => {
      const windows = new Windows(countsOf, options)
      const hit = (): [number, boolean, number] => {
        windows.clock.read()
        const { hits, allowed, resetMs } = windows.of(60_000).hit('key', 2)
        return [hits, allowed, resetMs]
      }
      const burst = [1, 2, 3, 4].map((hits) => [hits, hits <= 2, 60_000])
      assert.equal([hit(), hit(), hit(), hit()], burst)
      date.tick(60_000)
      assert.equal([hit(), hit(), hit(), hit()], burst)
    }),
  )

  each('windows count apart', () => {
    const windows = new Windows(countsOf, options)
    assert.is(windows.of(1000).hit('key', 5).hits, 1)
    assert.is(windows.of(2000).hit('key', 5).hits, 1)
    assert.is(windows.of(1000).hit('key', 5).hits, 2)
  })

  each('one window more than maxWindows is an error', () => {
    const windows = new Windows(countsOf, { ...options, maxWindows: 2 })
    for (const windowMs of [1000, 2000, 1000]) windows.of(windowMs).hit('key', 5)
    assert.throws(
      () => windows.of(3000),
      (error: { code?: string; option?: string }) =>
        error.code === 'ERR_MILLRACE_INVALID_OPTION' && error.option === 'maxWindows',
    )
    assert.is(windows.of(2000).hit('key', 5).hits, 2)
  })

  each('time goes on when Date.now steps back', () =>
    withFakeDate((date) => {
      const windows = new Windows(countsOf, options)
      const hits = (): number => {
        windows.clock.read()
        return windows.of(60_000).hit('key', 100).hits
      }
      hits()
      date.set(0) // a fake clock that begins at 0
      assert.is(hits(), 2)
      date.tick(60_000)
      assert.is(hits(), 1)
      date.set(START_MS + 1e12)
      assert.is(hits(), 1)
    }),
  )

  each('a window may last for ever, and one of less than a millisecond is one', () =>
    withFakeDate((date) => {
      const windows = new Windows(countsOf, { ...options, maxKeys: 16 })
      windows.of(Number.POSITIVE_INFINITY).hit('key', 5)
      windows.of(0.25).hit('key', 5)
      date.tick(1)
      windows.clock.read()
      assert.is(windows.of(0.25).hit('key', 5).hits, 1)
      date.tick(1000 * 365 * 86_400_000)
      windows.clock.read()
      assert.is(windows.of(Number.POSITIVE_INFINITY).hit('key', 5).hits, 2)
    }),
  )

  each('a closed window begins anew', async () => {
    const windows = new Windows(countsOf, options)
    windows.of(1000).hit('key', 5)
    await windows.close()
    assert.is(windows.of(1000).hit('key', 5).hits, 1)
  })

  each('a hit that is taken back leaves a known key without hits', () =>
    withFakeDate((date) => {
      const windows = new Windows(countsOf, options)
      const counts = windows.of(1000)
      counts.take('unknown', 5, 1)
      assert.equal(counts.read('unknown', 5), { hits: 0, allowed: true, resetMs: 1000 })
      counts.hit('key', 5)
      counts.take('key', 5, 7)
      assert.is(counts.read('key', 5)?.hits, 0)
      date.tick(1000)
      windows.clock.read()
      assert.is(counts.read('key', 5), undefined)
      assert.is(counts.read('unknown', 5), undefined)
    }),
  )

  each.run()
}

const sliding = suite('a sliding window')

sliding('counts as a model does, to the millisecond, with a limit in the log', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(1, 2, 3, 16, 17, 59), async (actions, limit) => {
      const counted = actions.filter(({ action }) => action !== 'take')
      await compare({}, limit, new SlidingModel(limit), counted)
    }),
    { numRuns: 150 },
  )
})

sliding('admits at most the limit in any window, with a limit in buckets', () =>
  withFakeDate((date) => {
    const windows = new Windows(countsOf)
    const admitted: number[] = []
    for (let i = 0; i < 5000; i++) {
      date.tick((i * 7919) % 50)
      windows.clock.read()
      if (windows.of(WINDOW_MS).hit('key', 100).allowed) admitted.push(Date.now())
      const inWindow = admitted.filter((ms) => ms > Date.now() - WINDOW_MS).length
      assert.ok(inWindow <= 100, `${inWindow} in a window`)
    }
    assert.ok(admitted.length > 1000)
  }),
)

sliding('hits with limits in both logs and in buckets count together', () => {
  const windows = new Windows(countsOf, { maxLogLimit: 18 })
  const counts = windows.of(WINDOW_MS)
  for (let i = 1; i <= 10; i++) assert.is(counts.hit('key', 10).hits, i)
  for (let i = 11; i <= 17; i++) assert.is(counts.hit('key', 17).hits, i)
  assert.is(counts.hit('key', 17).allowed, false)
  for (let i = 18; i <= 20; i++) assert.is(counts.hit('key', 20).hits, i)
  assert.is(counts.hit('key', 20).allowed, false)
  assert.is(counts.hit('key', 10).allowed, false)
  counts.clear('key')
  assert.is(counts.read('key', 20), undefined)
})

sliding('the oldest hits are taken back first, in whichever log or buckets they are', () =>
  withFakeDate((date) => {
    const windows = new Windows(countsOf, { maxLogLimit: 18 })
    const counts = windows.of(60_000) as SlidingCounts
    for (const limit of [100, 5, 18, 100, 5]) {
      windows.clock.read()
      counts.hit('key', limit)
      date.tick(10_000)
    }
    for (const left of [4, 3, 2, 1]) {
      counts.take('key', 100, 1)
      windows.clock.read()
      assert.is(counts.used('key'), left)
      const oldestMs = (6 - left) * 10_000
      const inMs = counts.oldestMs('key')
      // A bucket may count for a second longer.
      assert.ok(inMs >= oldestMs && inMs <= oldestMs + 1000, `${inMs} ms with ${left}`)
    }
  }),
)

sliding('a client that goes on asking is admitted at its limit', () =>
  withFakeDate((date) => {
    const windows = new Windows(countsOf)
    let admitted = 0
    for (let second = 0; second < 600; second++) {
      date.tick(1000)
      windows.clock.read()
      if (windows.of(60_000).hit('key', 10).allowed) admitted++
    }
    assert.is(admitted, 100)
  }),
)

test('bad options are named', () => {
  const cases: [object, string][] = [
    [{ algorithm: 'token-bucket' }, 'algorithm'],
    [{ maxKeys: 0 }, 'maxKeys'],
    [{ maxWindows: 1.5 }, 'maxWindows'],
    [{ maxLogLimit: 4097 }, 'maxLogLimit'],
    [{ limit: 5 }, 'options'],
  ]
  for (const [options, option] of cases) {
    assert.throws(
      () => new Windows(countsOf, options),
      (error: { code?: string; option?: string }) =>
        error.code === 'ERR_MILLRACE_INVALID_OPTION' && error.option === option,
    )
  }
  for (const windowMs of [0, -1, Number.NaN, '1m' as unknown as number]) {
    assert.throws(
      () => new Windows(countsOf).of(windowMs),
      (error: { code?: string }) => error.code === 'ERR_MILLRACE_INVALID_DURATION',
    )
  }
})

test('different keys stay different', () => {
  const long = 'x'.repeat(70_000)
  const keys = [
    '',
    '\0',
    '\0\0',
    1,
    '1',
    '\0n1',
    1n,
    true,
    'true',
    undefined,
    null,
    'null',
    long,
    `${long}x`,
    '__proto__',
  ]
  assert.is(new Set(keys.map(keyOf)).size, keys.length)
  const windows = new Windows(countsOf)
  for (const key of keys) assert.is(windows.of(1000).hit(keyOf(key), 5).hits, 1)
  assert.throws(
    () => keyOf({}),
    (error: { code?: string }) => error.code === 'ERR_MILLRACE_INVALID_KEY',
  )
})

fixed.run()
sliding.run()
test.run()
