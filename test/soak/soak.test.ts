// run: alone, typescript, full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { growthOf, leaksOf, report } from './report.js'
import { isAbove, slopeOf } from './slope.js'
import { type Sample, Soak, type SoakResult } from './soak.js'

const SECONDS = 12

test(`${SECONDS} seconds of full load from two threads: all counts match at every rest, and no window is over its limit`, async () => {
  let rests = 0
  const soak = new Soak({ minutes: SECONDS / 60, keys: 4_000, pace: 10, seed: 1, onRest: () => rests++ })
  const result = await soak.run()
  assert.equal(result.wrong, [])
  assert.ok(rests >= 1 && result.rests === rests + 1, `${rests} rests`)
  for (const { traffic, counts, hot } of result.limiters) {
    assert.ok(
      counts.every(({ admitted, refused, made }) => admitted > 0 && refused > 0 && made > 0),
      `a thread had no share in ${traffic.name}`,
    )
    assert.ok(hot.most > 0 && hot.most <= traffic.limit, `${hot.most} of ${traffic.limit} by a hot key`)
  }
  assert.ok(result.limiters.at(-1)!.passing.judged > 0, 'keys that left were judged')
  assert.ok(result.limiters.at(-1)!.evicted > 0, 'no expired key lost its way to another')

  const { lines, held } = report(result)
  assert.ok(held)
  assert.match(
    lines.at(-1)!,
    /^Held: 0\.\d+ minutes; [\d,]+ decisions by 2 threads .*; all counts match at \d+ rests; RSS /,
  )
})

/** Samples of an hour with the given growth in MB per hour, and a sawtooth of 4 MB. */
function hourOf(rss: number, mainHeap: number, workerHeap: number): SoakResult {
  const sizeAt = (rest: number, perHour: number) =>
    2 ** 20 * (100 + (rest % 7) * (4 / 7) + (rest / 360) * perHour)
  const samples: Sample[] = Array.from({ length: 360 }, (_, rest) => ({
    atMs: rest * 10_000,
    rssBytes: sizeAt(rest, rss),
    heapBytes: [sizeAt(rest, mainHeap), sizeAt(rest, workerHeap)],
  }))
  return { minutes: 60, samples } as Partial<SoakResult> as SoakResult
}

test('growing memory is reported by its kind, a sawtooth is not', () => {
  const leaks = (hour: SoakResult) => leaksOf(hour, growthOf(hour)).map((text) => text.split(' grows')[0])
  assert.equal(leaks(hourOf(0, 0, 0)), [])
  assert.equal(leaks(hourOf(19, 4.5, 4.5)), [])
  assert.equal(leaks(hourOf(22, 0, 0)), ['RSS'])
  assert.equal(leaks(hourOf(0, 6.5, 0)), ['the heap of the main thread'])
  assert.equal(leaks(hourOf(0, 0, 6.5)), ['the heap of the worker'])
  assert.equal(leaks({ ...hourOf(99, 99, 99), minutes: 9 }), [], 'too short to tell')
})

test('a slope is found in noise, and exceeds a bound only beyond its error', () => {
  const line = (noise: number) =>
    Array.from({ length: 30 }, (_, i) => ({ atMs: i * 120_000, value: i + (i % 2 === 0 ? noise : -noise) }))
  const sure = slopeOf(line(0))
  assert.ok(Math.abs(sure.perHour - 30) < 1e-9 && sure.standardError < 1e-9)
  assert.ok(isAbove(sure, 29) && !isAbove(sure, 31))
  const unsure = slopeOf(line(10))
  assert.ok(Math.abs(unsure.perHour - 30) < 10 && unsure.standardError > 5)
  assert.not(isAbove(unsure, 29))
})

test.run()
