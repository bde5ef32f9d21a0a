// The way that an insertion chooses, in random tables, compared with the documented rules.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SlidingWindow } from '#millrace/algorithms/window/sliding-window.js'
import { Reading } from '#millrace/core/reading.js'
import { Ticks } from '#millrace/core/ticks.js'
import { createArena } from '#millrace/memory/arena.js'
import { Insertion } from '#millrace/memory/insertion.js'
import {
  ADM,
  BLOCKED,
  CLAIMED,
  FREE,
  HEADER,
  LIVE,
  NAMED,
  NAMES_AT,
  ON_FULL,
  ONE_EPOCH,
  type OnFull,
  TICK,
  UNTIL,
} from '#millrace/memory/layout.js'
import { Table } from '#millrace/memory/table.js'
import { random } from '../algorithms/random.js'

const WINDOW = 10
const NOW = 100_000
const SET = 16
const rule = {
  name: 'default',
  limit: 100,
  windowMs: 1_000 * WINDOW,
  buckets: WINDOW,
  edge: 'strict',
  algorithm: 'sliding-window',
  align: 'none',
  period: 'none',
  units: 0,
  offsetMs: 0,
  flags: 0,
} as const

interface Way {
  name: number
  state: number
  total: number
  tick: number
  /** In sixteenths of a second from now. */
  blockedFor: number
}

type Roll = (most: number) => number

/** A random way. Most ways of a table are alike, so that every rule decides in some table. */
function anyWay(roll: Roll, kinds: readonly string[]): Way {
  const way = {
    name: 1 + roll(5),
    state: LIVE,
    total: 1 + roll(4),
    tick: NOW - roll(WINDOW + 2),
    blockedFor: 0,
  }
  switch (kinds[roll(kinds.length)]) {
    case 'unused':
      return { name: 0, state: FREE, total: 0, tick: 0, blockedFor: 0 }
    case 'claimed first':
      return { ...way, name: 0, state: CLAIMED }
    case 'free':
      return { ...way, state: FREE }
    case 'claimed':
      return { ...way, state: CLAIMED, tick: NOW - 2 * WINDOW }
    case 'named':
      return { ...way, state: NAMED, tick: NOW - 2 * WINDOW }
    case 'empty':
      return { ...way, total: 0, tick: NOW - roll(3) }
    case 'expired':
      return { ...way, tick: NOW - WINDOW - roll(4) }
    case 'blocked':
      return { ...way, total: BLOCKED, tick: NOW - 2 * WINDOW, blockedFor: roll(3) - 1 }
    case 'blocked lately':
      return { ...way, total: BLOCKED, tick: NOW - WINDOW - roll(4), blockedFor: 1 + roll(9) }
    case 'unblocked':
      return { ...way, total: BLOCKED }
    default:
      return way
  }
}

/** The ways that the rules allow; none if there is no room. */
function allowed(sets: readonly Way[][], home: number, onFull: OnFull, isToBlock: boolean): Way[] {
  const unused = sets.map((ways) => ways.filter(({ name }) => name === 0).length) as [number, number]
  const [first, second] = sets as [Way[], Way[]]
  const inOrder = unused[0] > 8 || unused[0] >= unused[1] ? [first, second] : [second, first]
  for (const ways of inOrder) {
    const fromHome = [...ways.slice(home), ...ways.slice(0, home)]
    const way = fromHome.find(({ name, state }) => name === 0 && state === FREE)
    if (way) return [way]
  }
  const isBlocked = ({ total, blockedFor }: Way) => total === BLOCKED && blockedFor > 0
  const isGone = ({ state, total, tick }: Way) =>
    state === FREE || (total === 0 && tick < NOW) || NOW - tick > WINDOW + 1
  const open = sets.map((ways) =>
    ways.filter((way) => [FREE, LIVE].includes(way.state) && !isBlocked(way)),
  ) as [Way[], Way[]]
  const gone = open.map((ways) => ways.filter(isGone)) as [Way[], Way[]]
  const more = gone[1].length > gone[0].length ? gone[1] : gone[0]
  if (more.length > 0) {
    const free = more.filter(({ state }) => state === FREE)
    return free.length > 0 ? free : more
  }
  const named = sets.flat().filter(({ state }) => state === NAMED)
  if (named.length > 0) return named
  const blocked = sets.flat().filter(isBlocked)
  if (blocked.length + (isToBlock ? 1 : 0) > SET) {
    const giving = onFull === 'evict' ? blocked : blocked.filter(({ tick }) => NOW - tick > WINDOW + 1)
    const soonest = Math.min(...giving.map(({ blockedFor }) => blockedFor))
    if (giving.length > 0) return giving.filter(({ blockedFor }) => blockedFor === soonest)
  }
  if (onFull !== 'evict') return []
  const least = Math.min(...open.flat().map(({ total }) => total))
  return open.flat().filter(({ total }) => total === least)
}

const LIVELY = ['live', 'live', 'live', 'live', 'live', 'claimed', 'blocked']
const MIXES = [
  ['unused', 'live', 'claimed first', 'free'],
  ['unused', ...LIVELY, ...LIVELY],
  ['free', 'expired', 'empty', ...LIVELY],
  ['free', ...LIVELY, ...LIVELY, ...LIVELY],
  ['expired', ...LIVELY, ...LIVELY, ...LIVELY],
  ['empty', ...LIVELY, ...LIVELY, ...LIVELY],
  ['named', ...LIVELY, ...LIVELY],
  ['claimed', 'blocked', 'live'],
  ['claimed'],
  ['claimed', 'claimed', 'claimed', 'unblocked'],
  ['live'],
  ['live', 'claimed'],
  ['live', 'claimed'],
  ['live', 'blocked lately'],
  ['live', 'blocked lately', 'blocked lately', 'blocked lately'],
  ['claimed', 'blocked lately'],
]

for (const onFull of ON_FULL) {
  test(`${onFull}: the order of choice is home if unused, free, expired, named, blocked beyond half, least used`, () => {
    const next = random(7)
    const roll: Roll = (most) => Math.floor(next() * most)
    const arena = createArena(rule, 40, onFull, 0)
    const { words, shape } = arena
    const table = new Table(words, shape)
    const window = new SlidingWindow(words, shape, 'strict', 0)
    const reading = new Reading({ now: () => NOW * 1_000 }, new Ticks(rule.windowMs, WINDOW, shape.modulus))
    const insertion = new Insertion(words, table, window, reading, { onFull })
    words[HEADER.NEWEST] = NOW * 16 + 16
    const rooms = new Set<boolean>()
    for (let round = 0; round < 5_000; round++) {
      const lo = (next() * 2 ** 32) | 0
      const hi = (next() * 2 ** 32) | 0
      const first = table.firstSet(lo)
      const second = table.secondSet(first, hi)
      const sets = [MIXES[roll(MIXES.length)]!, MIXES[roll(MIXES.length)]!].map((kinds) =>
        Array.from({ length: SET }, () => anyWay(roll, kinds)),
      )
      const places = new Map<Way, number>()
      for (const [i, way] of sets.flat().entries()) {
        const place = i < SET ? first + i : second + i - SET
        const base = window.base(place)
        const epoch = way.name === 0 && way.state === FREE ? 0 : ONE_EPOCH * roll(256)
        words[NAMES_AT + place] = way.name
        words[base + ADM] = epoch | way.state | way.total
        words[base + TICK] = way.tick
        words[base + UNTIL] = NOW * 16 + way.blockedFor
        places.set(way, place)
      }
      const isToBlock = next() < 0.5
      const ways = allowed(sets, lo & (SET - 1), onFull, isToBlock).map((way) => places.get(way))
      rooms.add(ways.length > 0)
      const chosen = insertion.choose(lo, hi, isToBlock)
      if (ways.length === 0) assert.is(chosen, -1, `round ${round}`)
      else assert.ok(ways.includes(chosen), `round ${round}: ${chosen}, not of ${ways}`)
    }
    assert.is(rooms.size, 2, 'some had room, some had none')
  })
}

test.run()
