// The time of a file, with simulated machine starts and clocks, in one process that opens and closes it.
// run: addon, modules
import { readFileSync, writeFileSync } from 'node:fs'
import type { Limiter } from 'millrace'
import * as assert from 'uvu/assert'
import { createLimiterOn } from '#millrace/create/create.js'
import { ADM, CLAIMED, HEADER, HEADER_WORDS, NAMES_AT, shapeFor } from '#millrace/memory/layout.js'
import { isOfThisBoot } from '#millrace/shared-file/file-clock.js'
import { bootIdOf, type Machine } from '#millrace/shared-file/machine.js'
import { assertRaises } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WALL = Date.UTC(2026, 10, 21)

interface State {
  bootId: string
  upMs: number
  wallMs: number
  wallErrorMs: number
  /** By the kernel, if that is not `upMs`; undefined if it does not tell. */
  uptimeMs?: number | undefined
}

const machineOf = (state: State): Machine => ({
  bootId: () => bootIdOf(state.bootId),
  monotonicMs: () => state.upMs,
  uptimeMs: () => ('uptimeMs' in state ? state.uptimeMs : state.upMs),
  wallMs: () => state.wallMs,
  wallErrorMs: () => state.wallErrorMs,
})
const FIRST = '11111111-2222-3333-4444-555555555555'
const first = (): State => ({ bootId: FIRST, upMs: 90 * 24 * HOUR, wallMs: WALL, wallErrorMs: 0 })
/** Another start of the machine, an hour and a half later by the wall clock. */
const second = (): State => ({
  bootId: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
  upMs: 20_000,
  wallMs: WALL + 90 * MINUTE,
  wallErrorMs: 0,
})

const open = (name: string, state: State): Limiter =>
  createLimiterOn(machineOf(state), { limit: 10, window: '1h', maxKeys: 1, shared: { file: at(name) } })

function headerWith(id: string): Int32Array {
  const header = new Int32Array(HEADER_WORDS)
  header.set(bootIdOf(id) ?? [], HEADER.BOOT_ID)
  return header
}

test('a boot is identified by all four words of its name, also if some are 0', () => {
  const here = (id: string) => machineOf({ ...first(), bootId: id })
  const cases: [noted: string, now: string, isSame: boolean | undefined][] = [
    [FIRST, FIRST, true],
    [FIRST, '11111111-2222-3333-4444-555555555556', false],
    [FIRST, '01111111-2222-3333-4444-555555555555', false],
    [FIRST, 'aaaaaaaa-2222-3333-bbbb-bbbb55555555', false],
    ['00000000-2222-3333-4444-555555555555', '00000000-2222-3333-4444-555555555555', true],
    ['00000000-2222-3333-4444-555555555555', '00000000-2222-3333-4444-555555555554', false],
    ['', FIRST, undefined],
    [FIRST, '', undefined],
    ['', '', undefined],
  ]
  for (const [noted, now, isSame] of cases) {
    assert.is(isOfThisBoot(headerWith(noted), here(now)), isSame, `${noted}, ${now}`)
  }
})

for (const [when, state, freed] of [
  ['another start of the machine', second(), true],
  ['one whose name is not known', { ...second(), bootId: '' }, true],
  ['the same start', first(), false],
] as const) {
  test(`a claimed way that is not in the counter is ${freed ? '' : 'not '}freed on ${when}`, async () => {
    const name = `claimed, ${when}`
    await open(name, first()).close()
    const bytes = readFileSync(at(name))
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    const { waysAt } = shapeFor(HOUR, 60, 2)
    words[NAMES_AT] = 77
    words[waysAt + ADM] = CLAIMED | (1 << 24) // CLAIMING is 0, as the disk may have it after a power loss
    writeFileSync(at(name), bytes)
    await open(name, state).close()
    const found = readFileSync(at(name)).readInt32LE(4 * (waysAt + ADM))
    assert.is((found & (3 << 22)) === CLAIMED, !freed)
  })
}

test('close() stores the wall clock, with the corrections by NTP since the last time', async () => {
  const state = { ...first(), wallMs: WALL - 20 * 24 * HOUR, wallErrorMs: Number.POSITIVE_INFINITY }
  const limiter = open('noted', state)
  for (let i = 0; i < 6; i++) limiter.check('key')
  Object.assign(state, { upMs: state.upMs + 10, wallMs: WALL, wallErrorMs: 0 }) // less than a second later
  await limiter.close()
  const again = open('noted', second())
  assert.is(again.usage('key'), 0)
  await again.close()
})

test('the stored value is the most by which the wall clock may be ahead; none if the kernel gives no error bound', async () => {
  const noted = () => readFileSync(at('errors')).readDoubleLE(4 * HEADER.WALL_AHEAD_MS)
  const state = { ...first(), wallErrorMs: 250 }
  const limiter = open('errors', state)
  assert.is(noted(), WALL - state.upMs + 250)
  state.wallErrorMs = Number.POSITIVE_INFINITY
  await limiter.close()
  assert.is(noted(), Number.POSITIVE_INFINITY)
})

test('a wall clock that was wrong before a restart and is right now returns no quota', async () => {
  for (const [name, then, now] of [
    ['then', Number.POSITIVE_INFINITY, 0],
    ['now', 0, Number.POSITIVE_INFINITY],
  ] as const) {
    const before = { ...first(), wallMs: WALL - 20 * 24 * HOUR, wallErrorMs: then }
    const limiter = open(`unvouched ${name}`, before)
    for (let i = 0; i < 10; i++) limiter.check('key')
    await limiter.close()
    const after = { ...second(), wallErrorMs: now }
    const again = open(`unvouched ${name}`, after)
    assert.not(again.check('key').allowed, name)
    after.upMs += HOUR + MINUTE
    assert.ok(again.check('key').allowed, name)
    await again.close()
  }
})

/** A clock with which a second process comes while the first has the file open and has made a decision. */
const meetings: [what: string, other: (first: State) => Partial<State>, isRefused: boolean][] = [
  ['the same clock', () => ({}), false],
  ['a clock 4 ms ahead', ({ upMs }) => ({ upMs: upMs + 4 }), false],
  ['a clock 40 ms ahead', ({ upMs }) => ({ upMs: upMs + 40 }), true],
  ['a clock an hour ahead', ({ upMs }) => ({ upMs: upMs + HOUR }), true],
  ['a clock 200 ms behind', ({ upMs }) => ({ upMs: upMs - 200 }), true],
  ['a clock that begins at 0', () => ({ upMs: 0 }), true],
  ['a clock that stood while the machine slept', ({ upMs }) => ({ uptimeMs: upMs + HOUR }), false],
  ['a kernel that does not tell its uptime', () => ({ uptimeMs: undefined }), false],
]
for (const [what, other, isRefused] of meetings) {
  test(`a process with ${what} ${isRefused ? 'is refused' : 'opens the file'}`, async () => {
    const fine = (state: State) =>
      createLimiterOn(machineOf(state), {
        ...{ limit: 10, window: 1_000, granularity: 5, maxKeys: 1 },
        shared: { file: at(`meets ${what}`) },
      })
    const state: State = { ...first(), uptimeMs: 90 * 24 * HOUR + 3 }
    const limiter = fine(state)
    limiter.check('key')
    Object.assign(state, { upMs: state.upMs + 10_000, uptimeMs: state.uptimeMs! + 10_000 })
    limiter.check('key')
    const open = () => fine({ ...state, ...other(state) })
    if (isRefused) assertRaises(open, 'ERR_MILLRACE_CLOCKS_DIFFER', 'shared.file')
    else await open().close()
    await limiter.close()
    await fine({ ...state, ...other(state) }).close() // alone: the file's time goes on
  })
}

test.run()
