import { CommanderError } from 'commander'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseArguments, parseHttpArguments } from '../../bench/arguments.js'
import { CASES } from '../../bench/cases/index.js'

/** What is written to stderr for arguments that are not understood. */
function refusalOf(...argv: string[]): string {
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
  assert.equal(parseArguments([]), { cases: Object.keys(CASES), quick: false, json: false, report: false })
})

test('--case may be given more than once, and each case runs once', () => {
  const { cases } = parseArguments(['--case', 'hash', '--case', 'clock', '--case', 'hash'])
  assert.equal(cases, ['hash', 'clock'])
})

test('--quick and --json are understood', () => {
  const { quick, json } = parseArguments(['--quick', '--json'])
  assert.ok(quick && json)
})

test('--report is of all cases, in a quick run too', () => {
  const { report, quick, cases } = parseArguments(['--report', '--quick'])
  assert.ok(report && quick)
  assert.equal(cases, Object.keys(CASES))
  assert.match(refusalOf('--report', '--case', 'hash'), 'cannot be used with')
})

test('the HTTP benchmark has no cases to choose from', () => {
  assert.equal(parseHttpArguments([]), { quick: false, json: false })
  assert.equal(parseHttpArguments(['--json', '--quick']), { quick: true, json: true })
  assert.throws(
    () => parseHttpArguments(['--case', 'hash'], () => {}),
    (error: unknown) => error instanceof CommanderError && error.exitCode !== 0,
  )
})

test('an unknown case is refused with the names of all', () => {
  const said = refusalOf('--case', 'clok')
  assert.match(said, 'clok')
  for (const name of Object.keys(CASES)) assert.match(said, name)
})

test('a name that every object has is no case', () => {
  assert.match(refusalOf('--case', 'toString'), 'no such case')
})

test('unknown options, values left over and missing names are refused', () => {
  assert.match(refusalOf('--fast'), '--fast')
  assert.match(refusalOf('check'), 'too many arguments')
  assert.match(refusalOf('--case'), 'argument missing')
})

test.run()
