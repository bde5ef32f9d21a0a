// run: full, also-long
// The demo `npm run demo:redis`: how it judges, what it prints, and a short run of it.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseArguments } from '../../demo/redis/arguments.js'
import type { DemoResult } from '../../demo/redis/demo.js'
import { judge, type ProcessLog, type RunKind, type RunLog } from '../../demo/redis/judge.js'
import { report } from '../../demo/redis/report.js'
import { admittedAt } from '../../demo/redis/server-time.js'
import fc from '../fast-check.js'
import { redisTest } from './skip.js'

const MAIN = fileURLToPath(new URL('../../demo/redis/main.js', import.meta.url))
const START_MS = 1_800_000_000_000

/** Times of admissions: so many at each, since the start. */
const at = (counts: Record<number, number>) =>
  Float64Array.from(Object.entries(counts).flatMap(([ms, count]) => Array(count).fill(START_MS + Number(ms))))

function processLog(byRedis: Record<number, number>, byShare: Record<number, number> = {}): ProcessLog {
  const refusals = { overLimit: 5, withoutAnswer: 0 }
  const times = { byRedisMs: at(byRedis), byShareMs: at(byShare) }
  const requests = times.byRedisMs.length + times.byShareMs.length + refusals.overLimit
  return { requests, contradictions: 0, ...refusals, ...times }
}

const logOf = (kind: RunKind, processes: readonly ProcessLog[]): RunLog => ({
  kind,
  limit: 100,
  windowMs: 1_000,
  startMs: START_MS,
  endMs: START_MS + 5_000,
  ...(kind !== 'answering' && { stopped: { fromMs: START_MS + 1_500, toMs: START_MS + 3_500 } }),
  processes: kind === 'answering' ? processes : processes.map((each) => ({ ...each, backAfterMs: 300 })),
})

test('all processes together may admit the limit in any window, and no more', () => {
  for (const kind of ['answering', 'closed'] as const) {
    const held = judge(logOf(kind, [processLog({ 400: 60 }), processLog({ 1400: 40, 1401: 60 })]))
    assert.equal([held.mostInAnyWindow, held.promised, held.held], [100, 100, true])
    const broken = judge(logOf(kind, [processLog({ 400: 60 }), processLog({ 1400: 41 })]))
    assert.equal([broken.mostInAnyWindow, broken.held], [101, false])
  }
})

test('with shares, the worst window is below twice the limit, and no process exceeds its share', () => {
  const before = { 1400: 100 }
  const after = { 2300: 50 }
  const held = judge(logOf('local', [processLog(before), processLog({}, after)]))
  assert.equal([held.mostInAnyWindow, held.promised, held.share, held.held], [150, 199, 50, true])
  const share = judge(logOf('local', [processLog({}), processLog({}, { 2300: 51 })]))
  assert.equal([share.mostInAnyWindow, share.processes[1]!.mostByShare, share.held], [51, 51, false])
  const twice = judge(logOf('local', [processLog(before), processLog({ 2399: 50 }, after)]))
  assert.equal([twice.mostInAnyWindow, twice.held], [200, false])
})

test('an admission that Redis did not make between request and reply breaks the proof', () => {
  const odd = judge(logOf('answering', [{ ...processLog({ 400: 1 }), contradictions: 1 }]))
  assert.is(odd.held, false)
  const text = report(resultOf(odd), 140, false).replaceAll(/\s+/g, ' ')
  assert.match(text, /BROKEN: .* not between request and reply: 1\./)
})

test("the time of Redis is known to the millisecond by a decision's resetMs", () => {
  const ms = fc.integer({ min: 0, max: 99 })
  fc.assert(
    fc.property(fc.nat(1_000_000), ms, ms, fc.nat(20), (offset, before, after, granules) => {
      const nowMs = START_MS + offset
      const resetMs = (Math.floor(nowMs / 100) + granules + 1) * 100 - nowMs
      const call = { sentMs: nowMs - before, receivedMs: nowMs + after, resetMs, granularityMs: 100 }
      if (before + after < 100) assert.is(admittedAt(call), nowMs)
      // not between request and reply
      const late = { ...call, sentMs: nowMs + 1, receivedMs: nowMs + 99 }
      assert.is(admittedAt(late), undefined)
    }),
  )
})

const resultOf = (...runs: DemoResult['runs']): DemoResult => ({
  redis: { name: 'redis', version: '7.0.15', port: 12_345 },
  processes: 2,
  requestsPerSecond: 2_000,
  limit: 100,
  windowMs: 1_000,
  runs,
  held: runs.every(({ held }) => held),
})

test('the report keeps to the width of the terminal, and colour does not change its text', () => {
  const logs = [processLog({ 400: 60, 2000: 100 }), processLog({ 1400: 40 }, { 2300: 50 })]
  const runs = (['answering', 'closed', 'local'] as const).map((kind) => judge(logOf(kind, logs)))
  for (const width of [60, 80, 140]) {
    const plain = report(resultOf(...runs), width, false)
    for (const line of plain.split('\n')) assert.ok(line.length <= width, `${line.length}: ${line}`)
    const coloured = report(resultOf(...runs), width, true)
    assert.is.not(coloured, plain)
    assert.is(stripVTControlCharacters(coloured), plain)
  }
})

function ran(args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { env, encoding: 'utf8' })
  return { status, stdout, stderr }
}

test('without redis-server, a message says how to install it', () => {
  const { status, stdout, stderr } = ran([], { PATH: '/nonexistent' })
  assert.equal([status, stdout], [1, ''])
  assert.match(stderr, /redis-server is not installed \(on Debian or Ubuntu: apt-get install -y redis-server/)
})

for (const [option, value, expected] of [
  ['--seconds', '3', 'from 4 to 3600'],
  ['--limit', '2', 'from 4 to 10000'],
  ['--requests-per-second', '1.5', 'from 8 to 20000'],
] as const) {
  test(`${option} ${value} is an error`, () => {
    let written = ''
    const parse = () =>
      parseArguments([option, value], (text) => {
        written += text
      })
    assert.throws(parse, ({ exitCode }: { exitCode: number }) => exitCode === 1)
    assert.match(written, expected)
  })
}

redisTest('four processes hold the limit under load, in an outage, and after it', () => {
  const { status, stdout, stderr } = ran(['--seconds', '5', '--limit', '100', '--json'])
  assert.equal([status, stderr], [0, ''])
  const { runs, held }: DemoResult = JSON.parse(stdout)
  assert.is(held, true)
  const [answering, closed, local] = runs as [
    DemoResult['runs'][0],
    DemoResult['runs'][0],
    DemoResult['runs'][0],
  ]
  assert.equal([answering.promised, closed.promised, local.promised], [100, 100, 199])
  for (const { mostInAnyWindow, promised, processes } of runs) {
    assert.ok(mostInAnyWindow <= promised && mostInAnyWindow > 0, `${mostInAnyWindow} of ${promised}`)
    assert.is(processes.length, 4)
    for (const { requests, byRedis, byShare, overLimit, withoutAnswer } of processes) {
      assert.ok(requests > 0)
      assert.is(byRedis + byShare + overLimit + withoutAnswer, requests)
    }
  }
  for (const { processes } of [closed, local]) {
    const sum = (value: (process: (typeof processes)[0]) => number) =>
      processes.reduce((all, each) => all + value(each), 0)
    assert.ok(sum(({ byRedis }) => byRedis) > 0)
    assert.ok(processes.every(({ backAfterMs }) => backAfterMs! > 0))
    if (processes === closed.processes) assert.ok(sum(({ withoutAnswer }) => withoutAnswer) > 0)
    else assert.ok(processes.every(({ mostByShare }) => mostByShare <= 25))
  }
  assert.ok(local.processes.reduce((all, { byShare }) => all + byShare, 0) > 0)
})

redisTest('the output in a file has no colour', () => {
  const { FORCE_COLOR: _, ...env } = process.env
  const { status, stdout } = ran(['--seconds', '4', '--requests-per-second', '400'], env)
  assert.is(status, 0)
  assert.is(stdout, stripVTControlCharacters(stdout))
  assert.is(stdout.match(/^Held: /gm)?.length, 3)
})

test.run()
