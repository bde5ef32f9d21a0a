// run: also-full, modules
// A rule whose window changes in a file: processes follow, join at the present rule, or are refused.
import { readFileSync, writeFileSync } from 'node:fs'
import { createLimiter, type LimiterOptions, type LimiterRule, type RulesLimiterOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { HEADER } from '#millrace/memory/layout.js'
import { type Admission, ChangesJudge, type Had } from '../judge/changes-judge.js'
import { assertRaises } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { ErrorThere, folder, Member, withMembers } from './processes.js'

const at = folder()
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const options = (file: string, more: Partial<LimiterOptions> = {}): LimiterOptions => ({
  limit: 10,
  window: '1m',
  maxKeys: 100,
  shared: { file },
  ...more,
})
const rules = (file: string, hourly: object = {}): RulesLimiterOptions => ({
  rules: [
    { name: 'burst', limit: 5, window: '1s' },
    { name: 'hourly', limit: 10, window: '1h', ...hourly },
  ],
  maxKeys: 100,
  shared: { file },
})

/** The windows and the limits of the member's rules. */
async function rulesOf(member: Member): Promise<[windowMs: number, limit: number][]> {
  const found = (await member.request({ do: 'rules' })) as LimiterRule[]
  return found.map(({ windowMs, limit }) => [windowMs, limit])
}

async function mismatchOf(opening: Promise<unknown>): Promise<ErrorThere> {
  try {
    await opening
  } catch (error) {
    if (!(error instanceof ErrorThere)) throw error
    assert.is(error.code, 'ERR_MILLRACE_SHARED_MISMATCH', error.message)
    return error
  }
  throw new Error('the file was opened')
}

test('another process follows a change of the window and the limit at its next decision', () =>
  withMembers(2, async ([a, b]) => {
    await a!.open(options(at('follows')))
    await b!.open(options(at('follows')))
    assert.is(await a!.check('key', 7), 7)
    await b!.call('update', 'default', { window: '1h', limit: 9 })
    assert.equal(await rulesOf(a!), [[HOUR, 9]])
    assert.is(await a!.check('key', 9), 2)
    await a!.call('update', 'default', { window: '1m', limit: 12 })
    assert.is(await b!.check('key', 9), 3)
    assert.equal(await rulesOf(b!), [[MINUTE, 12]])
  }))

test('a process joins with the options of an earlier window at the present rule, and sets its limit with those of the present one', () =>
  withMembers(3, async ([a, old, present]) => {
    await a!.open(options(at('joins')))
    await a!.check('key', 4)
    await a!.call('update', 'default', { window: '1h', limit: 8 })
    await old!.open(options(at('joins')))
    assert.equal(await rulesOf(old!), [[HOUR, 8]])
    assert.is(await old!.check('key', 9), 4)
    await present!.open(options(at('joins'), { window: '1h', limit: 20 }))
    assert.equal(await rulesOf(a!), [[HOUR, 20]])
    assert.is(await a!.check('key', 20), 12)
  }))

test('a window or a granularity that the file never had is a mismatch with both values', () =>
  withMembers(2, async ([a, b]) => {
    await a!.open(options(at('never')))
    await a!.call('update', 'default', { window: '1h' })
    const window = await mismatchOf(b!.open(options(at('never'), { window: '2h' })))
    assert.is(window.option, 'window')
    assert.match(window.message, /window 1h .*"window 2h"/)
    const granularity = await mismatchOf(b!.open(options(at('never'), { granularity: '10s' })))
    assert.is(granularity.option, 'window, granularity')
    assert.match(granularity.message, /window 1h, granularity 1m .*"window 1m, granularity 10s"/)
    await b!.open(options(at('never')))
  }))

test('the file keeps its windows over a restart of all processes, by kill -9 or by close', async () => {
  for (const name of ['killed', 'closed']) {
    const first = await Member.start()
    await first.open(options(at(name)))
    await first.check('key', 6)
    await first.call('update', 'default', { window: '1h', limit: 9 })
    await first.check('key', 1)
    if (name === 'closed') await first.call('close')
    await first.kill()
    const second = await Member.start()
    await second.open(options(at(name)))
    assert.equal(await rulesOf(second), [[HOUR, 9]])
    assert.is(await second.check('key', 9), 2)
    await second.call('update', 'default', { window: '2h', limit: 11 })
    assert.is(await second.check('key', 9), 2)
    await second.kill()
    const third = createLimiter(options(at(name), { window: '1h' }))
    assert.equal([third.rule.windowMs, third.rule.limit], [2 * HOUR, 11])
    assert.is(third.usage('key'), 11)
    await third.close()
  }
})

test('a rule has its 64 windows over all restarts', async () => {
  const file = at('records')
  for (let i = 1; i < 64; i += 21) {
    const limiter = createLimiter(options(file))
    for (let k = i; k < i + 21; k++) limiter.update('default', { window: MINUTE + 60 * k })
    await limiter.close()
  }
  const limiter = createLimiter(options(file))
  const act = () => limiter.update('default', { window: '1h' })
  assert.match(assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'window').message, /64/)
  assert.is(limiter.rule.windowMs, MINUTE + 60 * 63)
  await limiter.close()
  await createLimiter(options(file, { window: MINUTE + 60 * 30 })).close()
})

test('no charge is forgotten, whichever process admitted it and whichever changed the window', async () => {
  const MOST = 60
  const windows = [MINUTE, 6_000, HOUR, MINUTE, 61_200, 10 * MINUTE, 6_000, 10 * MINUTE]
  const file = at('forgets nothing')
  const machine = { bootId: '11111111-2222-3333-4444-555555555555', upMs: 1_000_123, wallMs: 0 }
  const admissions: Admission[] = []
  const had: (Had & { endedMs: number })[] = []
  let seed = 1
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const passes = async (members: Member[], ms: number) => {
    machine.upMs += ms
    for (const member of members) await member.request({ do: 'turn', machine })
  }
  await withMembers(3, async (members) => {
    const [a, b, late] = members as [Member, Member, Member]
    const here = [a, b]
    for (const member of here) await member.open(options(file, { limit: MOST }), machine)
    for (const [record, windowMs] of windows.entries()) {
      if (record > 0) {
        had.at(-1)!.endedMs = machine.upMs
        await here[next(here.length)]!.call('update', 'default', { window: windowMs })
      }
      had.push({ windowMs, buckets: 60, limit: MOST, endedMs: Number.POSITIVE_INFINITY })
      if (record === 3) {
        await late.open(options(file, { limit: 1 }), machine) // the window of the first and of this one
        await late.call('update', 'default', { limit: MOST })
        here.push(late)
      }
      for (const member of here) assert.equal(await rulesOf(member), [[windowMs, MOST]])
      for (let step = 0; step < 40; step++) {
        const column = next(2)
        const units = await here[next(here.length)]!.check(`key ${column}`, 1 + next(4))
        const tick = Math.floor((machine.upMs * 60) / windowMs)
        const fromMs = machine.upMs
        if (units > 0) admissions.push({ column, units, fromMs, first: tick, last: tick, record })
        if (next(3) === 0) await passes(here, next(windowMs / 8))
      }
    }
    await passes(here, 22 * MINUTE)
    assert.is(await a.check('key 0', MOST + 1), MOST, 'at rest, there is room for the whole limit')
  })
  const judge = new ChangesJudge(had, 'strict', 2, admissions)
  judge.judgeAll()
  assert.equal(judge.complaints, [])
  assert.ok(
    judge.carried > 0 && judge.full > 0,
    `${judge.carried} windows with earlier units, ${judge.full} full`,
  )
})

test('of two rules in one file each changes by itself; a process joins with any window that each has had', () =>
  withMembers(3, async ([a, b, c]) => {
    const file = at('two rules')
    await a!.open(rules(file))
    await b!.open(rules(file))
    assert.is(await a!.check('key', 4), 4)
    await a!.call('update', 'hourly', { window: '1d', limit: 6 })
    assert.equal(await rulesOf(b!), [
      [1_000, 5],
      [24 * HOUR, 6],
    ])
    await b!.call('update', 'burst', { window: '1m', limit: 50 })
    assert.is(await a!.check('key', 9), 2)
    for (const hourly of [{}, { window: '1d', limit: 6 }]) await c!.open(rules(file, hourly))
    assert.equal(await rulesOf(c!), [
      [MINUTE, 50],
      [24 * HOUR, 6],
    ])
    const { option, message } = await mismatchOf(c!.open(rules(file, { window: '2h' })))
    assert.is(option, 'rules[1].window')
    assert.match(message, /rules\[1\]\.window 1d .*"rules\[1\]\.window 2h"/)
  }))

test('a process that dies in the middle of a conversion leaves its end to the others', () =>
  withMembers(2, async ([a, b]) => {
    await b!.open(options(at('conversion')))
    await a!.open(options(at('conversion')))
    assert.is(await a!.check('key', 7), 7)
    await a!.call('update', 'default', { window: '1h' })
    await a!.request({ do: 'die converting' })
    const died = await a!.check('key', 1).then(
      () => false,
      ({ code }) => code === 'ENDED',
    )
    assert.ok(died, 'the process has died while it converted the key')
    assert.is(await b!.check('key', 9), 3)
    assert.is(await b!.call('usage', 'key'), 10)
  }))

test('a process that dies between two steps of update leaves the rule as it is, and the next change works', async () => {
  const file = at('unfinished')
  await createLimiter(options(file)).close()
  const bytes = readFileSync(file)
  bytes.writeInt32LE(2, 4 * HEADER.RECORDS_USED) // it has taken the second record, and has not written it
  writeFileSync(file, bytes)
  const limiter = createLimiter(options(file))
  assert.ok(limiter.check('key', 4).allowed)
  limiter.update('default', { window: '1h' })
  assert.equal([limiter.rule.windowMs, limiter.peek('key').remaining], [HOUR, 6])
  await limiter.close()
})

test('a file of layout version 5, without records, is refused by name and not changed', async () => {
  const file = at('version')
  await createLimiter(options(file)).close()
  const bytes = readFileSync(file)
  bytes.writeInt32LE(5, 4 * HEADER.VERSION)
  writeFileSync(file, bytes)
  const act = () => createLimiter(options(file))
  const { message } = assertRaises(act, 'ERR_MILLRACE_SHARED_MISMATCH', 'layout version', file)
  assert.match(message, /layout version 5 .*"layout version 8"/)
  assert.match(message, /use another file, or delete this one while no process has it open/)
  assert.ok(readFileSync(file).equals(bytes))
})

test.run()
