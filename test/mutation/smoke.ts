import * as assert from 'node:assert/strict'
import type { Built } from '../explore/copy.js'
import { Machine } from '../explore/machine.js'

const LIMIT = 3
const BUCKETS = 4

/** One limiter, exact counts over a few windows: what any test would notice, before anything longer is tried. */
export function smoke(built: Built): void {
  for (const edge of ['strict', 'smooth'] as const) {
    built.playOn(undefined)
    const rule = { name: 'default', limit: LIMIT, windowMs: BUCKETS * 1_000, buckets: BUCKETS, edge }
    const arena = built.createArena(rule, 100, 'deny', 0)
    built.playOn(new Machine(arena.words, 1))
    let now = 5_000
    const engine = new built.InlineEngine(arena, 'default', { now: () => now })
    const admitted = (key: number, cost: number) => engine.checkNow(key, key, cost).allowed
    for (let window = 0; window < 5; window++) {
      for (const key of [1, -7, 0x12345678]) {
        assert.ok(admitted(key, 2), 'a new window has room')
        assert.ok(!admitted(key, 2), 'a part of it is not all')
        assert.ok(admitted(key, 1), 'a rest fits')
        assert.ok(!admitted(key, 1), 'and nothing more')
      }
      now += BUCKETS * 1_000
      assert.ok(!admitted(1, LIMIT), 'what is a window old still counts, up to a granule')
      now += 1_000 + window
      assert.equal(engine.outlook.remaining(1, 1, LIMIT), LIMIT)
    }
  }
}
