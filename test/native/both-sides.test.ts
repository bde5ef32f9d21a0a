// run: full
import { createLimiter, type Edge, manualClock, type RuleOptions } from 'millrace'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { ExactLog } from '../judge/exact-log.js'
import { decideOnBothSides } from './both-sides.js'
import { isLeftOut, type Side } from './sides.js'

const test = isLeftOut() ? always.skip : always
const SIDES: readonly Side[] = ['addon', 'typescript', 'addon', 'typescript']
const GRANULE_MS = 1_000
const LIMIT = 40
const SHARE = 0.5
/** All admissions between two calm advances are recorded. */
const CALM = { every: 10, turns: 2 }
/** A window spans eight advances: at the last two of ten calm ones all of the window is recorded. */
const CALM_WINDOWS = { every: 40, turns: 10 }

interface Setting {
  readonly granules: number
  readonly rangeSum?: RuleOptions['rangeSum']
  readonly edge: Edge
  readonly cost: number
  readonly keys: number
  /** How many granules the clock advances at a time. */
  readonly turn: number
  readonly phases: number
}

/** Units admitted to each key between two advances of the clock. */
function decide({ granules, rangeSum, edge, cost, keys, turn, phases }: Setting, haste: number, calm = CALM) {
  const startMs = 1e9
  const limiter = createLimiter({
    limit: LIMIT,
    window: granules * GRANULE_MS,
    granularity: GRANULE_MS,
    edge,
    maxKeys: keys,
    clock: manualClock(startMs),
    ...(rangeSum && { rangeSum }),
  })
  return decideOnBothSides(limiter, SIDES, {
    keys,
    phases,
    cost,
    startMs,
    turnMs: turn * GRANULE_MS,
    haste,
    calm,
  })
}

const PLAIN = { granules: 60, turn: 61, keys: 100, phases: 300 * SHARE }
const NODES = [
  { rangeSum: 'blocks', granules: 257, turn: 258 },
  { rangeSum: 'blocks', granules: 300, turn: 301 },
  { rangeSum: 'blocks', granules: 5_000, turn: 5_001 },
  { rangeSum: 'fenwick', granules: 257, turn: 258 },
  { rangeSum: 'fenwick', granules: 5_000, turn: 5_001 },
] as const
const nameOf = ({ rangeSum, granules, edge, cost }: Setting) =>
  `${rangeSum ?? 'linear'} cells of ${granules.toLocaleString('en')} granules, ${edge}, cost ${cost}`

for (const setting of [
  ...[1, 3].flatMap((cost) => (['strict', 'smooth'] as const).map((edge) => ({ ...PLAIN, edge, cost }))),
  ...NODES.map((shape) => ({ ...shape, edge: 'strict' as const, cost: 3, keys: 40, phases: 300 * SHARE })),
]) {
  test(`${nameOf(setting)}: two threads of each side on one arena never exceed a key's limit in any window`, async () => {
    const admitted = await decide(setting, 0)
    assert.equal(
      admitted.filter((units) => units > LIMIT),
      new Int32Array(0),
    )
    const { keys, phases, cost } = setting
    for (let phase = CALM.every - 1; phase < phases; phase += CALM.every) {
      const between = admitted.subarray(phase * keys, (phase + 1) * keys)
      assert.equal(between, new Int32Array(keys).fill(Math.floor(LIMIT / cost) * cost), `phase ${phase}`)
    }
  })
}

/** The clock advances while there is room, so that each window holds admissions of many times. */
for (const shape of NODES) {
  const turn = Math.floor(shape.granules / 7) // so that windows end anywhere in the blocks
  const setting: Setting = {
    ...shape,
    turn,
    edge: 'strict',
    cost: 1,
    keys: 40,
    phases: 1_000,
  }
  test(`${nameOf(setting)}: they never exceed it in windows that move by a seventh`, async () => {
    const admitted = await decide(setting, 0.1, CALM_WINDOWS)
    const { granules, keys, phases } = setting
    for (let key = 0; key < keys; key++) {
      const log = new ExactLog()
      for (let i = 0; i < phases; i++) {
        const tick = i * turn
        log.add(tick, admitted[i * keys + key]!)
        log.forget(tick - granules)
        const used = log.used(tick, granules)
        assert.ok(used <= LIMIT, `${used} of ${LIMIT} units: ${log.describe(tick, granules)}`)
        if (i % CALM_WINDOWS.every >= CALM_WINDOWS.every - 2) assert.is(used, LIMIT, `turn ${i}`)
      }
    }
  })
}

always.run()
