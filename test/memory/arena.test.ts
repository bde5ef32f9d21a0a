// A thread that attaches to an arena reads the header that the creating thread wrote.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { MillraceError } from '#millrace/core/errors.js'
import { checkRule } from '#millrace/core/rule.js'
import { attachArena, createArena } from '#millrace/memory/arena.js'
import { EDGES, HEADER, ON_FULL, SUMS, setsFor, shapeFor } from '#millrace/memory/layout.js'

for (const edge of EDGES) {
  for (const onFull of ON_FULL) {
    for (const sums of SUMS) {
      test(`an attached arena equals the created one: ${edge}, ${onFull}, ${sums}`, () => {
        const rule = checkRule({ limit: 7, window: '10m', granularity: '2s', edge })
        const made = createArena(rule, 50, onFull, 123.5, sums)
        const found = attachArena(made.buffer)
        assert.equal(found.shape, made.shape)
        assert.is(found.shape.sums, sums)
        assert.is(found.words.length, made.shape.words)
        assert.equal([found.edge, found.onFull, found.originMs], [edge, onFull, 123.5])
        assert.is(found.words[HEADER.CURRENT], 7)
      })
    }
  }
}

test('every arena has a hash seed of its own, of 64 bits', () => {
  const rule = checkRule({ limit: 7, window: '1m' })
  const arenas = Array.from({ length: 8 }, () => createArena(rule, 1, 'evict', 0))
  for (const half of [HEADER.SEED_0, HEADER.SEED_1]) {
    assert.is(new Set(arenas.map(({ words }) => words[half])).size, arenas.length)
  }
  // The seed does not overlap the next word.
  for (const { words } of arenas) assert.is(words[HEADER.SEED_1 + 1], 0)
})

test('an arena that is too large to allocate is refused with its size in bytes', () => {
  const rule = checkRule({ limit: 7, window: '1d', granularity: '1s' })
  for (const maxKeys of [10_000, 100_000]) {
    const bytes = 4 * shapeFor(rule.windowMs, rule.buckets, setsFor(maxKeys), 'blocks').words
    try {
      // A machine with enough memory allocates it.
      assert.is(createArena(rule, maxKeys, 'evict', 0).buffer.byteLength, bytes)
    } catch (error) {
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_ARENA_TOO_LARGE')
      assert.match((error as MillraceError).message, `needs ${bytes} bytes`)
    }
  }
})

test('an arena that the system does not allocate is refused with its size in bytes and the reason', () => {
  const rule = checkRule({ limit: 7, window: '1m' })
  const bytes = 4 * shapeFor(rule.windowMs, rule.buckets, setsFor(1), 'linear').words
  const cause = new RangeError('Array buffer allocation failed')
  const Real = globalThis.SharedArrayBuffer
  globalThis.SharedArrayBuffer = class {
    constructor() {
      throw cause
    }
  } as never
  try {
    createArena(rule, 1, 'evict', 0)
    assert.unreachable('it was allocated')
  } catch (error) {
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_ARENA_TOO_LARGE')
    assert.match((error as MillraceError).message, `needs ${bytes} bytes`)
    assert.is((error as MillraceError).cause, cause)
  } finally {
    globalThis.SharedArrayBuffer = Real
  }
})

test.run()
