// run: typescript, full
// Interrupts a thread at each of its operations on shared memory in turn. There another thread changes the
// window, converts the cell, and may die. `test/explore` judges decisions at more interleavings. These tests
// judge what calls return, and stops of hours.
import { attachLimiter, type Limiter, type LimiterOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachArena } from '#millrace/memory/arena.js'
import { ADM, CONVERTING, HI } from '#millrace/memory/layout.js'
import { limiterWith } from '../limiter/support.js'
import { diesAt, interrupted } from './interrupted.js'

/** Of the points at which another thread dies. The steps from an advance to a carry have more. */
const STEP = 5

function setUp(options: Partial<LimiterOptions> = {}) {
  const { clock, limiter } = limiterWith({ maxKeys: 1, ...options })
  const { words, shape } = attachArena(limiter.share().buffer)
  const wayOf = (field: number) => words[shape.waysAt + usedWay() * shape.wayWords + field]!
  const usedWay = () => {
    const ways = Array.from({ length: shape.ways }, (_, way) => way)
    return ways.find((way) => words[shape.waysAt + way * shape.wayWords + ADM] !== 0)!
  }
  return { clock, limiter, other: attachLimiter(limiter.share()), wayOf }
}

type Setup = ReturnType<typeof setUp>

interface Play<T> {
  make: () => Setup
  act: (limiter: Limiter) => T
  between: (setup: Setup) => void
  judge: (setup: Setup, result: T, at: string) => void
}

/** Runs the play for every point at which `act` can be interrupted. Returns the number of points. */
function everywhere<T>({ make, act, between, judge }: Play<T>): number {
  for (let point = 0; ; point++) {
    const setup = make()
    const { result, wasInterrupted } = interrupted(
      [point],
      () => act(setup.limiter),
      () => between(setup),
    )
    if (!wasInterrupted) return point
    judge(setup, result, `interrupted at ${point}`)
  }
}

/**
 * The same while another thread converts the full cell of a key, and dies at every fifth of its points in
 * turn. The window changes before `act` or during it.
 */
function besideAConversion<T>(act: (limiter: Limiter) => T, judge: (result: T, at: string) => void): void {
  for (const isChanged of [false, true]) {
    let deaths = 0
    for (let dies = true; dies; deaths += STEP) {
      dies = false
      const points = everywhere({
        make: () => {
          const setup = setUp()
          setup.limiter.check('key', 5)
          if (isChanged) setup.other.update('default', { window: '1h' })
          return setup
        },
        act,
        between: ({ other }) => {
          if (!isChanged) other.update('default', { window: '1h' })
          if (diesAt(deaths, () => other.check('key'))) dies = true
        },
        judge: (_, result, at) => judge(result, `${at} by a thread that died at ${deaths}`),
      })
      assert.ok(points > 4, `${points} points`)
    }
    assert.ok(deaths > 20, `${deaths} deaths`)
  }
}

test('a look at a full key refuses, however far another thread has converted its cell', () => {
  besideAConversion(
    (limiter) => limiter.peek('key'),
    ({ allowed, remaining }, at) => assert.equal([allowed, remaining], [false, 0], at),
  )
})

test('the usage of a key contains its units, however far another thread has converted its cell', () => {
  besideAConversion(
    (limiter) => limiter.usage('key'),
    (used, at) => assert.ok(used >= 5, `${used} ${at}`),
  )
})

test('a decision beside a change is one by the rule before it, or one by the rule after it', () => {
  const calls: ((limiter: Limiter) => boolean)[] = [
    (limiter) => limiter.check('key').allowed,
    (limiter) => limiter.peek('key').allowed,
    (limiter) => limiter.checkMany(['key']).allowed.includes(1),
  ]
  for (const act of calls) {
    const points = everywhere({
      make: () => {
        const setup = setUp({ limit: 100, window: '1h', granularity: '1m' })
        setup.limiter.check('key', 50)
        setup.clock.advance(1_800_000)
        setup.limiter.check('key', 50)
        return setup
      },
      act,
      between: ({ other }) => {
        other.update('default', { limit: 10, window: '1m' })
        other.usage('key') // converts the cell
      },
      judge: (_, isAllowed, at) => assert.not(isAllowed, at),
    })
    assert.ok(points > 1, `${points} points`)
  }
})

test('a thread that stops for hours anywhere in a conversion forgets nothing', () => {
  let isConverting: boolean
  let charged = 0
  let refusals = 0
  let stops = 0
  everywhere({
    make: () => {
      const setup = setUp({ window: '1h', granularity: '1m' })
      setup.limiter.check('key')
      setup.other.update('default', { window: '1m', granularity: '1s' })
      return setup
    },
    act: (limiter) => limiter.check('key', 5).allowed,
    between: ({ clock, other, wayOf }) => {
      isConverting = (wayOf(HI) & CONVERTING) !== 0
      if (!isConverting) return
      stops++
      other.check('key')
      other.update('default', { window: '60h', granularity: '1h' })
      clock.advance(3 * 3_600_000)
      // What the thread that stops has carried may count twice until it goes on: then this is refused.
      charged = 2 + (other.check('key', 3).allowed ? 3 : 0)
    },
    judge: ({ other }, isAllowed, at) => {
      if (!isConverting) return
      if (charged === 2) refusals++
      else assert.not(isAllowed, at)
      const used = other.usage('key')
      assert.ok(used >= charged + (isAllowed ? 5 : 0), `${used} of ${charged} ${at}`)
      assert.not(other.check('key', 6 - charged).allowed, at)
    },
  })
  assert.ok(stops > 2 && refusals < stops / 10, `${stops} stops, ${refusals} refusals`)
})

test.run()
