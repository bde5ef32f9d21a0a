// run: also-full
// What becomes of a file's counts when the machine's monotonic clock starts anew. The processes are real, the file is; only
// what the machine says of its start and its clocks is handed in.

import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { size, sized } from '../size.js'
import { type ErrorThere, folder, type MachineState, Member } from './processes.js'

const at = folder()
const full = size === 'full' ? test : () => {}
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WALL = Date.UTC(2026, 10, 21)
const FIRST = '11111111-2222-3333-4444-555555555555'
const SECOND = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee'
const NAMELESS = ''
/** 60 minutes by the minute. */
const options = (file: string) => ({ limit: 10, window: '1h' as const, maxKeys: 100, shared: { file } })

/** Uses 6 of 10 on one start of the machine; then how many are left on another, `passedMs` later by the wall clock. */
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
const turn = (member: Member, machine: Partial<MachineState>) => member.tell({ do: 'turn', machine })
/** When the machine first started, it had been up for so long that a clock begun anew seems to lie in the past. */
const LONG_UP = { bootId: FIRST, upMs: 90 * 24 * HOUR, wallMs: WALL }

for (const end of ['kill', 'close'] as const) {
  test(`after a restart of the machine counts go on where they were, and expire when they would have (${end})`, async () => {
    const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 10 * MINUTE }
    const member = await leftAfter(`on ${end}`, LONG_UP, after, end)
    assert.is(await usage(member), 6)
    assert.is(await member.check('key', 9), 4)
    // 60 minutes and the granule under way, from the first charges on: 10 are over.
    await turn(member, { upMs: 20_000 + 50 * MINUTE - 1 })
    assert.is(await usage(member), 10)
    await turn(member, { upMs: 20_000 + 51 * MINUTE })
    assert.is(await usage(member), 4)
    await member.kill()
  })
}

test('the second process on a start of the machine goes by the time of the first, whatever the wall clock says by then', async () => {
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

full('a machine that was off for longer than the window finds the counts expired', async () => {
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
  full(
    `a wall clock that is ${what} after a restart gives nobody quota, and locks nobody out for more than a window and a granule`,
    async () => {
      const upMs = 30_000
      const member = await leftAfter(what, LONG_UP, { bootId: SECOND, upMs, wallMs })
      assert.is(await usage(member), 6)
      assert.is(await member.check('key', 9), 4)
      await turn(member, { upMs: upMs + 59 * MINUTE })
      assert.is(await usage(member), 10)
      await turn(member, { upMs: upMs + HOUR + MINUTE })
      assert.is(await usage(member), 0)
      await member.kill()
    },
  )
}

/** No NTP, or not yet: the kernel does not say how far the clock may be wrong. */
const UNVOUCHED = { wallErrorMs: null } as const

test('a wall clock that was wrong before a restart and is right behind it gives nobody quota', async () => {
  const before = { ...LONG_UP, wallMs: WALL - 20 * 24 * HOUR, ...UNVOUCHED }
  const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 65_000 }
  const member = await leftAfter('was wrong', before, after)
  assert.is(await usage(member), 6)
  assert.is(await member.check('key', 9), 4)
  await turn(member, { upMs: 20_000 + HOUR + MINUTE })
  assert.is(await usage(member), 0)
  await member.kill()
})

test('a wall clock that nothing keeps right is not believed behind a restart: the time off counts as none', async () => {
  const after = { bootId: SECOND, upMs: 20_000, wallMs: WALL + 3 * HOUR }
  const cases: [string, Partial<MachineState>, Partial<MachineState>][] = [
    ['before', UNVOUCHED, {}],
    ['after', {}, UNVOUCHED],
    ['ever', UNVOUCHED, UNVOUCHED],
  ]
  for (const [when, then, now] of sized({ quick: cases.slice(0, 1), full: cases })) {
    const member = await leftAfter(`unvouched ${when}`, { ...LONG_UP, ...then }, { ...after, ...now })
    assert.is(await usage(member), 6, when)
    // The minutes that the machine has been up since do count.
    await turn(member, { upMs: 20_000 + HOUR + MINUTE })
    assert.is(await usage(member), 0, when)
    await member.kill()
  }
})

full(
  'of the time that the wall clock tells, as much is left out as it may be wrong, then and now',
  async () => {
    const before = { ...LONG_UP, wallErrorMs: 2 * MINUTE }
    const after = { bootId: SECOND, upMs: 0, wallMs: WALL + 63 * MINUTE, wallErrorMs: MINUTE }
    const member = await leftAfter('errors', before, after)
    assert.is(await usage(member), 6)
    await turn(member, { upMs: MINUTE })
    assert.is(await usage(member), 0)
    await member.kill()
  },
)

full('a clock set by hand while the file is open is not believed from then on', async () => {
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

full(
  'with a wall clock that tells nothing, counts expire once the machine itself has been up for as long',
  async () => {
    const after = { bootId: SECOND, upMs: HOUR + 2 * MINUTE, wallMs: 5_000 }
    const member = await leftAfter('up long', LONG_UP, after)
    assert.is(await usage(member), 0)
    await member.kill()
  },
)

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

full('a machine that slept, its monotonic clock with it, goes on limiting where it was', async () => {
  const after = { bootId: FIRST, upMs: LONG_UP.upMs + 1, wallMs: WALL + 8 * HOUR }
  const member = await leftAfter('slept', LONG_UP, after)
  assert.is(await member.check('key', 9), 4)
  await member.kill()
})

test('the wall clock is noted while the file is in use, not only when it is opened', async () => {
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

test('where a system does not name its boots, its monotonic clock holds, and nobody gets quota', async () => {
  const before = { ...LONG_UP, bootId: NAMELESS }
  const cases = [
    ['restarted', { upMs: 20_000, wallMs: WALL + 10 * MINUTE }],
    ['went on', { upMs: before.upMs + 10 * MINUTE, wallMs: WALL + 10 * MINUTE }],
    ['went on, wall clock set ahead', { upMs: before.upMs + 10 * MINUTE, wallMs: WALL + 90 * HOUR }],
    ['went on, wall clock set back', { upMs: before.upMs + 10 * MINUTE, wallMs: WALL - 90 * HOUR }],
  ] as const
  for (const [name, clocks] of sized<readonly (typeof cases)[number][]>({
    quick: cases.slice(0, 2),
    full: cases,
  })) {
    const member = await leftAfter(`nameless, ${name}`, before, { bootId: NAMELESS, ...clocks })
    assert.is(await usage(member), 6, name)
    await turn(member, { upMs: clocks.upMs + HOUR + MINUTE })
    assert.is(await usage(member), 0, name)
    await member.kill()
  }
})

test('a file that is open on one start of the machine is refused to who claims to be on another', async () => {
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

full('blocks go on across a restart of the machine, too', async () => {
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
