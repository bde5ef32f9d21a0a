import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ArenaSpace, MOST_AREAS } from '#millrace/memory/arena-space.js'
import { playableCopy } from '../explore/copy.js'
import { type Machine, STOP } from '../explore/machine.js'

const PAGE = 1_024
const built = await playableCopy()

test('areas of tags do not overlap, and a tag keeps its area', () => {
  const space = ArenaSpace.create(10 * PAGE, 'maxWindows', 2)
  const first = space.area(7, 1)!
  const second = space.area(8, PAGE + 1)!
  assert.equal([first, second], [PAGE, 2 * PAGE])
  assert.is(space.area(7, 1), first)
  assert.is(new ArenaSpace(space.buffer).area(8, PAGE + 1), second)
  assert.equal([space.has(7), space.has(9)], [true, false])
  assert.is(space.buffer.byteLength, 4 * (second + 2 * PAGE))
  assert.is(space.freeWords, 7 * PAGE)
  assert.is(space.area(9, 8 * PAGE), undefined)
  assert.is(space.has(9), false)
  assert.is(space.area(10, 7 * PAGE), 4 * PAGE)
  assert.is(space.area(11, 1), undefined)
})

test('there are at most as many areas as entries', () => {
  const space = ArenaSpace.create(2 * MOST_AREAS * PAGE, 'maxWindows', 2)
  for (let tag = 1; tag <= MOST_AREAS; tag++) assert.ok(space.area(tag, 1) !== undefined)
  assert.is(space.area(MOST_AREAS + 1, 1), undefined)
})

test('other memory is refused', () => {
  assert.throws(() => new ArenaSpace(new SharedArrayBuffer(8)), /shared.policies/)
  assert.throws(() => new ArenaSpace(new SharedArrayBuffer(4 * PAGE)), /shared.policies/)
  assert.throws(() => ArenaSpace.create(2 ** 60, 'maxWindows', 64), /maxWindows/)
})

/** A request of one thread: an area of one page. */
type Tags = readonly number[]

/** Plays threads that ask for areas, one step at a time. A thread runs anew for each step: its log answers the rest. */
class Stage {
  readonly #space: ArenaSpace
  readonly #words: Int32Array
  readonly #tags: Tags
  readonly #logs: number[][]
  readonly results: (number | undefined | null)[]
  readonly seen = new Set<string>()

  constructor(tags: Tags) {
    this.#space = built.ArenaSpace.create(4 * PAGE, 'maxWindows', 2)
    this.#words = new Int32Array(this.#space.buffer)
    this.#tags = tags
    this.#logs = tags.map(() => [])
    this.results = tags.map(() => null)
  }

  /** All schedules from here. `dead` threads do no more steps. */
  explore(check: (results: Stage['results']) => void, dead: readonly boolean[]): void {
    const state = `${this.#words.subarray(0, 32).join()}|${this.#logs.join('|')}|${dead.join()}`
    if (this.seen.has(state)) return
    this.seen.add(state)
    let isOver = true
    for (const thread of this.#tags.keys()) {
      if (this.results[thread] !== null || dead[thread]) continue
      isOver = false
      const [words, log] = [this.#words.slice(), [...this.#logs[thread]!]]
      if (!dead.some((is) => is))
        this.explore(
          check,
          dead.map((is, i) => is || i === thread),
        )
      this.#step(thread)
      this.explore(check, dead)
      this.#words.set(words)
      this.#logs[thread] = log
      this.results[thread] = null
    }
    if (isOver) check(this.results)
  }

  #step(thread: number): void {
    const log = this.#logs[thread]!
    const known = log.length
    let at = 0
    const words = this.#words
    const operation = (act: () => number): number => {
      if (at < log.length) return log[at++]!
      if (log.length > known) throw STOP
      at++
      log.push(act())
      return log.at(-1)!
    }
    const machine = {
      read: (index: number) => operation(() => words[index]!),
      compareExchange: (index: number, expected: number, next: number) =>
        operation(() => {
          const before = words[index]!
          if (before === expected) words[index] = next
          return before
        }),
    }
    built.playOn(machine as unknown as Machine)
    try {
      this.results[thread] = this.#space.area(this.#tags[thread]!, 1)
    } catch (error) {
      if (error !== STOP) throw error
    } finally {
      built.playOn(undefined)
    }
  }
}

for (const tags of [
  [5, 5],
  [5, 6],
  [5, 5, 5],
] as const) {
  test(`threads that ask for ${tags.join(', ')} at once, in every order, and if one dies anywhere`, () => {
    const stage = new Stage(tags)
    let schedules = 0
    stage.explore(
      (results) => {
        schedules++
        const byTag = new Map<number, number>()
        for (const [thread, start] of results.entries()) {
          if (start === null || start === undefined) continue
          const tag = tags[thread]!
          assert.is(byTag.get(tag) ?? start, start, 'a tag has one area')
          byTag.set(tag, start)
        }
        assert.is(new Set(byTag.values()).size, byTag.size, 'an area has one tag')
        // Four pages are enough for all, even if each thread but one per tag loses a page.
        assert.ok(results.every((start) => start !== undefined))
      },
      tags.map(() => false),
    )
    assert.ok(schedules >= 1 && stage.seen.size > 10)
    console.log(`${tags.join()}: ${stage.seen.size} states, ${schedules} ends`)
  })
}

test.run()
