// run: full, typescript, modules
// Units on lease in memory that threads share: every interleaving of two spenders and the owner. Each rule of
// `lease-memory.ts` is left out once, and noticed.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { LeaseMemory as Memory } from '#millrace/redis/leases/lease-memory.js'
import { type Edit, type Judge, type Operation, Stepped, steppedCopy } from './stepped.js'

/** A table of one cell, and two slots of a quarter of the window. */
const SMALL: readonly Edit[] = [
  ['const CELLS_PER_SET = 8', 'const CELLS_PER_SET = 1'],
  ['const SLOTS = 32', 'const SLOTS = 2'],
  ['const SLOTS_PER_WINDOW = 64', 'const SLOTS_PER_WINDOW = 4'],
]
const [WINDOW_MS, LEASE_MS, START_MS] = [4_000, 1_500, 10_000]
const TAG = ~0xffffff
/** The words of the only cell, after the header. */
const CELL = 1
const [END, HELD] = [CELL + 2, CELL + 4]
const WORDS = CELL + 4 + 1 + 2
type Key = readonly [lo: number, hi: number]
const [KEY, OTHER]: readonly [Key, Key] = [
  [11, 12],
  [21, 22],
]

/** When the units with a tag were granted, for whom, and until when they may be spent. */
interface Lease {
  readonly fromMs: number
  readonly endMs: number
  readonly lo: number
}

interface Notes {
  /** The last reading of each thread. */
  readonly readings: number[]
  readonly leases: Record<number, Lease>
  /** The readings of the units that were taken, in their order. */
  readonly taken: number[]
  /** Of the owner. */
  granted: number
  returned: number
  admitted: number
}

const unitsIn = (word: number) => word & ~TAG

class Spending implements Judge<Notes> {
  readonly words: Int32Array
  /** The last thread. */
  readonly owner: number
  notes!: Notes

  constructor(words: Int32Array, owner: number) {
    this.words = words
    this.owner = owner
  }

  start(): Notes {
    const held = this.words[HELD]!
    const lease = { fromMs: START_MS, endMs: this.words[END]!, lo: KEY[0] }
    const leases = { [held & TAG]: lease }
    // One unit has been spent before.
    return { readings: [], leases, taken: [START_MS], granted: unitsIn(held) + 1, returned: 0, admitted: 1 }
  }

  done(notes: Notes, { thread, kind, index, found, next }: Operation): void {
    this.notes = notes
    if (kind === 'clock') notes.readings[thread] = found
    else if (kind === 'compareExchange' && index === HELD && found !== next)
      this.#change(notes, thread, found, next)
  }

  #change(notes: Notes, thread: number, found: number, next: number): void {
    const more = unitsIn(next) - unitsIn(found)
    const before = notes.leases[found & TAG]
    if (thread !== this.owner) {
      if (more > 0) return // given back
      const reading = notes.readings[thread]!
      assert.ok(before !== undefined && before.lo === KEY[0], 'units of a lease of the key')
      assert.ok(reading >= before.fromMs && reading < before.endMs, `spent at ${reading}, not in its lease`)
      notes.taken.push(reading)
      return
    }
    notes.granted += Math.max(0, more)
    notes.returned -= Math.min(0, more)
    const lease = { fromMs: notes.readings[this.owner]!, endMs: this.words[END]!, lo: this.words[CELL]! }
    notes.leases[next & TAG] = more > 0 ? lease : before!
  }

  end(notes: Notes): void {
    const held = unitsIn(this.words[HELD]!)
    assert.is(notes.granted - notes.returned - held, notes.taken.length, 'spent is what is not held any more')
    assert.ok(notes.admitted <= notes.taken.length, 'admitted without a unit')
  }
}

/** The owner takes stock, gives all back, and gets a new lease, for the same key or for another one. */
async function scene(
  next: Key,
  edits: readonly Edit[] = [],
  spenders = 1,
  preemptions?: number,
): Promise<number> {
  const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
  const judge = new Spending(words, spenders)
  const machine = new Stepped(words, START_MS, judge)
  const { LeaseMemory } = await steppedCopy<{ LeaseMemory: typeof Memory }>(
    'redis/leases/lease-memory.js',
    machine,
    [...SMALL, ...edits],
  )
  const like = { rules: 1, windowMs: WINDOW_MS, leaseMs: LEASE_MS, originMs: 0 }
  const memory = new LeaseMemory({ ...like, buffer: words.buffer as SharedArrayBuffer }, () => machine.now())
  memory.claim(CELL, ...KEY)
  memory.grant(CELL, 3, 0, START_MS + LEASE_MS)
  memory.spend(CELL, ...KEY, 1)
  const spend = () => {
    const cell = memory.find(...KEY)
    if (cell >= 0 && memory.spend(cell, ...KEY, 1)) judge.notes.admitted++
  }
  const owner = () => {
    const held = memory.keep(CELL, 0, 0)
    const ms = machine.now()
    judgeAges(judge.notes.taken.slice(0, 3 - held), memory.ages(CELL, ms), ms)
    if (next !== KEY) {
      memory.release(CELL)
      memory.claim(CELL, ...next)
    }
    memory.grant(CELL, 1, 0, machine.now() + LEASE_MS)
  }
  const programs = [...new Array<() => void>(spenders).fill(spend), owner]
  return machine.explore(programs, spenders === 1 ? [1_100, 600] : [1_600], preemptions)
}

/** The newest units of the slots date those that were spent: each not before its time. */
function judgeAges(spent: readonly number[], ages: ReturnType<Memory['ages']>, ms: number): void {
  const latest = (a: number, b: number) => b - a
  const told = ages.flatMap(([ageMs, units]) => new Array<number>(units).fill(ms - ageMs)).sort(latest)
  for (const [i, atMs] of [...spent].sort(latest).entries())
    assert.ok((told[i] ?? ms) >= atMs, `spent at ${spent}, told ${told}`)
}

for (const [what, next] of [
  ['the same key', KEY],
  ['another key', OTHER],
] as const) {
  test(`one spends while the owner leases for ${what}: in its time, for its key, and not too old`, async () => {
    const states = await scene(next)
    assert.ok(states > 500, `${states} states`)
  })

  test(`two spend while the owner leases for ${what}`, async () => {
    const states = await scene(next, [], 2, 2)
    assert.ok(states > 1_000, `${states} states`)
  })
}

/** By the rule that is left out. */
const MISTAKES: Readonly<Record<string, Edit>> = {
  'the end is not checked': ['if (((end - now) | 0) <= 0)', 'if (false)'],
  'the clock is read before HELD': [
    'if (!this.#see(cell, cost))\n                return false;\n            const ms = this.#nowMs();',
    'const ms = this.#nowMs();\n            if (!this.#see(cell, cost))\n                return false;',
  ],
  'the name is not checked': ['!this.#isOf(cell, lo, hi)', 'false'],
  'units are noted after they are taken': [
    'this.#note(cell, cost, ms) && this.#take(cell, cost)',
    'this.#take(cell, cost) && (this.#note(cell, cost, ms), true)',
  ],
  'the tag is not compared': ['((found ^ seen) & ~UNITS) !== 0 || ', ''],
  'a change keeps the tag': ['((held + ONE_TAG) & ~UNITS)', '(held & ~UNITS)'],
  'HELD comes before END': [
    'this.#change(cell + HELD + r, (held) => Math.min(held + units, UNITS));',
    'this.#change(cell + HELD + r, (held) => Math.min(held + units, UNITS)), end !== undefined && store(this.#words, cell + END, Math.floor(end) | 0);',
  ],
}

for (const [name, edit] of Object.entries(MISTAKES))
  test(`it is noticed that ${name}`, async () => {
    const extra: Edit[] =
      name === 'HELD comes before END'
        ? [['if (end !== undefined)\n            store(this.#words, cell + END, Math.floor(end) | 0);', '']]
        : []
    const changed = [edit, ...extra]
    const scenes = [() => scene(KEY, changed), () => scene(OTHER, changed), () => scene(KEY, changed, 2, 2)]
    for (const play of scenes) {
      try {
        await play()
      } catch (error) {
        assert.instance(error, assert.Assertion)
        return
      }
    }
    assert.unreachable('nothing was noticed')
  })

test.run()
