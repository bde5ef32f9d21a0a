// run: full
// A file's counts after a restart of the machine, when its monotonic clock starts at 0. The processes and the
// file are real; only the readings of the machine's start and clocks are simulated.

import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { type ErrorThere, folder, type MachineState, Member } from './processes.js'

const at = folder()
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WALL = Date.UTC(2026, 10, 21)
const FIRST = '11111111-2222-3333-4444-555555555555'
const SECOND = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee'
const NAMELESS = ''
/** A window of 60 minutes with one-minute buckets. */
const options = (file: string) => ({ limit: 10, window: '1h' as const, maxKeys: 100, shared: { file } })

/**
 * Uses 6 of 10 on one start of the machine. Returns the rest on another start, `passedMs` later by the wall
 * clock.
 */
async function leftAfter(
  name: string,
  before: MachineState,
  after: MachineState,
  end: 'kill' | 'close' = 'kill',
): Promise<Member> {
  const first = await Member.start()
  await first.open(options(at(name)), before)
  assert.is(await first.check('key', 6), 6)
  if (end === 'close') await first.call('close')
  await first.kill()
  const second = await Member.start()
  await second.open(options(at(name)), after)
  return second
}

const usage = (member: Member) => member.call('usage', 'key')
const turn = (member: Member, machine: Partial<MachineState>) => member.request({ do: 'turn', machine })
/** The uptime at the first start: so long that a restarted clock seems to be in the past. */
const LONG_UP = { bootId: FIRST, upMs: 90 * 24 * HOUR, wallMs: WALL }

for (const end of ['kill', 'close'] as const) {
  test(`after a restart of the machine counts continue and expire on time (${end})`, async () => {
    const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 10 * MINUTE }
    const member = await leftAfter(`on ${end}`, LONG_UP, after, end)
    assert.is(await usage(member), 6)
    assert.is(await member.check('key', 9), 4)
    // 10 of the 60 minutes and the current granule have passed since the first charges.
    await turn(member, { upMs: 20_000 + 50 * MINUTE - 1 })
    assert.is(await usage(member), 10)
    await turn(member, { upMs: 20_000 + 51 * MINUTE })
    assert.is(await usage(member), 4)
    await member.kill()
  })
}

test('the second process after a restart uses the time of the first, with any wall clock', async () => {
  const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 10 * MINUTE }
  const second = await leftAfter('third', LONG_UP, after)
  assert.is(await second.check('key', 9), 4)
  await second.kill()
  const third = await Member.start()
  await third.open(options(at('third')), { ...after, upMs: 20_000 + MINUTE, wallMs: WALL + 400 * 24 * HOUR })
  assert.is(await usage(third), 10)
  await turn(third, { upMs: 20_000 + 51 * MINUTE })
  assert.is(await usage(third), 4)
  await third.kill()
})

test('after longer than a window without power, the counts have expired', async () => {
  const after = { bootId: SECOND, upMs: 1_000, wallMs: WALL + 3 * HOUR }
  const member = await leftAfter('long off', LONG_UP, after)
  assert.is(await usage(member), 0)
  assert.is(await member.check('key', 12), 10)
  await member.kill()
})

for (const [what, wallMs] of [
  ['set back by a day', WALL - 24 * HOUR],
  ['at 1970', 5_000],
] as const) {
  test(`a wall clock that is ${what} after a restart returns no quota, and delays none by more than a window and a granule`, async () => {
    const upMs = 30_000
    const member = await leftAfter(what, LONG_UP, { bootId: SECOND, upMs, wallMs })
    assert.is(await usage(member), 6)
    assert.is(await member.check('key', 9), 4)
    await turn(member, { upMs: upMs + 59 * MINUTE })
    assert.is(await usage(member), 10)
    await turn(member, { upMs: upMs + HOUR + MINUTE })
    assert.is(await usage(member), 0)
    await member.kill()
  })
}

/** A machine without NTP: the kernel gives no error bound of the clock. */
const UNVOUCHED = { wallErrorMs: null } as const

test('a wall clock that was wrong before a restart and is right after it returns no quota', async () => {
  const before = { ...LONG_UP, wallMs: WALL - 20 * 24 * HOUR, ...UNVOUCHED }
  const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 65_000 }
  const member = await leftAfter('was wrong', before, after)
  assert.is(await usage(member), 6)
  assert.is(await member.check('key', 9), 4)
  await turn(member, { upMs: 20_000 + HOUR + MINUTE })
  assert.is(await usage(member), 0)
  await member.kill()
})

test('an unsynchronized wall clock is not trusted after a restart: the time without power counts as 0', async () => {
  const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 3 * HOUR }
  const cases: [string, Partial<MachineState>, Partial<MachineState>][] = [
    ['before', UNVOUCHED, {}],
    ['after', {}, UNVOUCHED],
    ['ever', UNVOUCHED, UNVOUCHED],
  ]
  for (const [when, then, now] of cases) {
    const member = await leftAfter(`unvouched ${when}`, { ...LONG_UP, ...then }, { ...after, ...now })
    assert.is(await usage(member), 6, when)
    // The minutes since the restart do count.
    await turn(member, { upMs: 20_000 + HOUR + MINUTE })
    assert.is(await usage(member), 0, when)
    await member.kill()
  }
})

test('the error bounds of both readings are subtracted from the wall clock’s time', async () => {
  const before = { ...LONG_UP, wallErrorMs: 2 * MINUTE }
  const after = { bootId: SECOND, upMs: 0, wallMs: WALL + 63 * MINUTE, wallErrorMs: MINUTE }
  const member = await leftAfter('errors', before, after)
  assert.is(await usage(member), 6)
  await turn(member, { upMs: MINUTE })
  assert.is(await usage(member), 0)
  await member.kill()
})

test('a clock that is set while the file is open is not trusted any more', async () => {
  const first = await Member.start()
  await first.open(options(at('set')), LONG_UP)
  await turn(first, { upMs: LONG_UP.upMs + 2_000, wallMs: WALL - 20 * 24 * HOUR, ...UNVOUCHED })
  assert.is(await first.check('key', 6), 6)
  await first.kill()
  const second = await Member.start()
  await second.open(options(at('set')), { bootId: SECOND, upMs: 20_000, wallMs: WALL + 65_000 })
  assert.is(await usage(second), 6)
  await second.kill()
})

test('without a trusted wall clock, counts expire after the machine has been up for that long', async () => {
  const after = { bootId: SECOND, upMs: HOUR + 2 * MINUTE, wallMs: 5_000 }
  const member = await leftAfter('up long', LONG_UP, after)
  assert.is(await usage(member), 0)
  await member.kill()
})

test('on the same start of the machine the wall clock changes nothing', async () => {
  for (const [name, step] of [
    ['ahead', 1],
    ['back', -1],
  ] as const) {
    const after = { bootId: FIRST, upMs: LONG_UP.upMs + MINUTE, wallMs: WALL + step * 400 * 24 * HOUR }
    const member = await leftAfter(name, LONG_UP, after)
    assert.is(await usage(member), 6)
    await turn(member, { upMs: LONG_UP.upMs + HOUR + MINUTE })
    assert.is(await usage(member), 0)
    await member.kill()
  }
})

test('after a sleep that stopped the monotonic clock, counts continue', async () => {
  const after = { bootId: FIRST, upMs: LONG_UP.upMs + 1, wallMs: WALL + 8 * HOUR }
  const member = await leftAfter('slept', LONG_UP, after)
  assert.is(await member.check('key', 9), 4)
  await member.kill()
})

test('the wall clock is stored while the file is in use, not only at opening', async () => {
  const first = await Member.start()
  await first.open(options(at('noted')), { ...LONG_UP, wallMs: 5_000 }) // before the clock was set over the network
  await turn(first, { wallMs: WALL, upMs: LONG_UP.upMs + 2_000 })
  assert.is(await first.check('key', 6), 6)
  await first.kill()
  const second = await Member.start()
  await second.open(options(at('noted')), { bootId: SECOND, upMs: 20_000, wallMs: WALL + 30_000 })
  assert.is(await usage(second), 6)
  await second.kill()
})

test('without boot names, the monotonic clock decides, and no quota returns', async () => {
  const before = { ...LONG_UP, bootId: NAMELESS }
  const cases = [
    ['restarted', { upMs: 20_000, wallMs: WALL + 10 * MINUTE }],
    ['went on', { upMs: before.upMs + 10 * MINUTE, wallMs: WALL + 10 * MINUTE }],
    ['went on, wall clock set ahead', { upMs: before.upMs + 10 * MINUTE, wallMs: WALL + 90 * HOUR }],
    ['went on, wall clock set back', { upMs: before.upMs + 10 * MINUTE, wallMs: WALL - 90 * HOUR }],
  ] as const
  for (const [name, clocks] of cases) {
    const member = await leftAfter(`nameless, ${name}`, before, { bootId: NAMELESS, ...clocks })
    assert.is(await usage(member), 6, name)
    await turn(member, { upMs: clocks.upMs + HOUR + MINUTE })
    assert.is(await usage(member), 0, name)
    await member.kill()
  }
})

test('a file that is open on one start of the machine cannot be opened on another', async () => {
  const [first, second] = [await Member.start(), await Member.start()]
  await first.open(options(at('two boots')), LONG_UP)
  const other = { bootId: SECOND, upMs: 20_000, wallMs: WALL }
  await second.open(options(at('two boots')), other).then(
    () => assert.unreachable('it was let in'),
    (error: ErrorThere) => assert.is(error.code, 'ERR_MILLRACE_SHARED_FILE'),
  )
  assert.is(await first.check('key', 12), 10)
  await Promise.all([first.kill(), second.kill()])
})

test('blocks continue after a restart of the machine', async () => {
  const first = await Member.start()
  await first.open(options(at('blocks')), LONG_UP)
  await first.call('block', 'eve', '30m')
  await first.kill()
  const second = await Member.start()
  await second.open(options(at('blocks')), { bootId: SECOND, upMs: 20_000, wallMs: WALL + 10 * MINUTE })
  assert.is(await second.check('eve', 1), 0)
  await turn(second, { upMs: 20_000 + 21 * MINUTE })
  assert.is(await second.check('eve', 1), 1)
  await second.kill()
})

test.run()
