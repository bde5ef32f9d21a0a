import { CommanderError } from 'commander'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  parseArguments,
  parseConfigArguments,
  parseHttpArguments,
  parseInstructionsArguments,
  parseRedisArguments,
  parseServiceArguments,
} from '../../bench/arguments.js'
import {
  CASES,
  CONFIG_CASES,
  INSTRUCTIONS_CASES,
  REDIS_CASES,
  SERVICE_CASES,
} from '../../bench/cases/index.js'

/** The text written to stderr for invalid arguments. */
function errorTextFor(...argv: string[]): string {
  let written = ''
  assert.throws(
    () =>
      parseArguments(argv, (text) => {
        written += text
      }),
    (error: unknown) => error instanceof CommanderError && error.exitCode !== 0,
  )
  return written
}

test('without arguments every case runs in full', () => {
  assert.equal(parseArguments([]), {
    cases: Object.keys(CASES),
    quick: false,
    json: false,
    report: undefined,
  })
})

test('--case may be given more than once, and each case runs once', () => {
  const { cases } = parseArguments(['--case', 'hash', '--case', 'clock', '--case', 'hash'])
  assert.equal(cases, ['hash', 'clock'])
})

test('--quick and --json set their flags', () => {
  const { quick, json } = parseArguments(['--quick', '--json'])
  assert.ok(quick && json)
})

test('--report runs all cases and bench:http, with --quick too, or those that are named', () => {
  const { report, quick, cases } = parseArguments(['--report', '--quick'])
  assert.ok(quick)
  assert.is(report, 'all')
  assert.equal(cases, [...Object.keys(CASES), 'http', 'in-situ'])
  const some = parseArguments(['--report', '--case', 'hash'])
  assert.is(some.report, 'cases')
  assert.equal(some.cases, ['hash'])
})

test('the HTTP benchmark has its own two cases', () => {
  assert.equal(parseHttpArguments([]), { case: 'http', quick: false, json: false })
  assert.equal(parseHttpArguments(['--json', '--quick']), { case: 'http', quick: true, json: true })
  assert.is(parseHttpArguments(['--case', 'in-situ']).case, 'in-situ')
  assert.throws(
    () => parseHttpArguments(['--case', 'hash'], () => {}),
    (error: unknown) => error instanceof CommanderError && error.exitCode !== 0,
  )
})

test('the benchmark of the service runs all of its cases, or those that are named', () => {
  const all = { cases: Object.keys(SERVICE_CASES), quick: false, json: false, report: undefined }
  assert.equal(parseServiceArguments([]), all)
  assert.equal(parseServiceArguments(['--case', 'service-memory']).cases, ['service-memory'])
  assert.is(parseServiceArguments(['--report']).report, 'all')
  assert.is(parseServiceArguments(['--report', '--case', 'service-memory']).report, 'cases')
})

test('the Redis benchmark runs all of its cases, or those that are named', () => {
  assert.equal(parseRedisArguments([]), { cases: Object.keys(REDIS_CASES), quick: false, json: false })
  const argv = ['--case', 'redis-memory', '--case', 'redis-memory', '--quick']
  assert.equal(parseRedisArguments(argv), { cases: ['redis-memory'], quick: true, json: false })
  assert.throws(
    () => parseRedisArguments(['--case', 'hash'], () => {}),
    (error: unknown) => error instanceof CommanderError && error.exitCode !== 0,
  )
})

test('the benchmark of configuration stores has a number of policies', () => {
  assert.equal(parseConfigArguments([]), { cases: Object.keys(CONFIG_CASES), quick: false, json: false })
  assert.is(parseConfigArguments(['--policies', '1_000_000']).policies, 1_000_000)
  for (const policies of ['0', '1.5', 'many', '1e12'])
    assert.throws(
      () => parseConfigArguments(['--policies', policies], () => {}),
      (error: unknown) => error instanceof CommanderError && error.exitCode !== 0,
    )
})

test('the error for an unknown case lists all cases', () => {
  const text = errorTextFor('--case', 'clok')
  assert.match(text, 'clok')
  for (const name of Object.keys(CASES)) assert.match(text, name)
})

test('a property name of every object is not a case', () => {
  assert.match(errorTextFor('--case', 'toString'), 'No such case')
})

test('unknown options, extra arguments and missing values are errors', () => {
  assert.match(errorTextFor('--fast'), '--fast')
  assert.match(errorTextFor('check'), 'too many arguments')
  assert.match(errorTextFor('--case'), 'argument missing')
})

test('bench:instructions runs all cases, or those that are named', () => {
  assert.equal(parseInstructionsArguments([]).cases, Object.keys(INSTRUCTIONS_CASES))
  assert.equal(parseInstructionsArguments(['--case', 'instructions-node']).cases, ['instructions-node'])
  assert.is(parseInstructionsArguments([]).report, undefined)
  assert.is(parseInstructionsArguments(['--report']).report, 'all')
  assert.is(parseInstructionsArguments(['--report', '--case', 'instructions-node']).report, 'cases')
})

test.run()
