// run: full
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ROUNDS } from '../../bench/benchmark.js'
import { clock } from '../../bench/cases/clock.js'
import type { Report } from '../../bench/report.js'

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url))

function bench(...argv: string[]) {
  return spawnSync(process.execPath, [MAIN, ...argv], { encoding: 'utf8' })
}

test('--json prints only figures on stdout, of every contender in every round', () => {
  const { status, stdout, stderr } = bench('--quick', '--case', 'clock', '--json')
  assert.is(status, 0, stderr)
  const { machine, quick, cases } = JSON.parse(stdout) as Report
  assert.is(machine.node, process.version)
  assert.is(quick, true)
  assert.equal(
    cases.map(({ name }) => name),
    ['clock'],
  )
  const [{ rounds, figures, verdicts }] = cases as [Report['cases'][number]]
  assert.is(rounds.length, ROUNDS.quick)
  for (const { name } of clock.contenders) {
    assert.ok(rounds.every((round) => round[name]!.ns! > 0))
    const { median, min, max } = figures[name]!.ns!
    assert.ok(min <= median && median <= max)
  }
  assert.is(verdicts.length, clock.goals.length)
  assert.match(stderr, `clock, round ${ROUNDS.quick} of ${ROUNDS.quick}`)
})

test('an unknown case exits with 2 and prints nothing on stdout', () => {
  const { status, stdout, stderr } = bench('--case', 'nothing')
  assert.is(status, 2)
  assert.is(stdout, '')
  assert.match(stderr, 'nothing')
})

test.run()
