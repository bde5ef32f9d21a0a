// run: typescript
// The warning for an arena of more than 1 GiB. It is printed once in a process, so each case has a process of
// its own.
import { execFileSync } from 'node:child_process'
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

/** The warnings of a process that creates limiters with these options. */
function warningsOf(...options: object[]): string[] {
  const script = `
    import { createLimiter } from 'millrace'
    const warnings = []
    process.on('warning', ({ name, code, message }) => warnings.push([name, code, message].join(': ')))
    for (const options of ${JSON.stringify(options)}) createLimiter(options)
    setImmediate(() => console.log(JSON.stringify(warnings)))`
  const cwd = new URL('../../../', import.meta.url)
  const args = ['--no-warnings', '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: 'utf8' }))
}

const granularityIn = (warning: string) => /granularity '(\w+)'/.exec(warning)?.[1]

const SECONDS_OF_A_DAY = { limit: 5, window: '1d', granularity: '1s', maxKeys: 4_000 } as const

test('an arena of more than 1 GiB causes one warning, with a granularity that makes it smaller', () => {
  const warnings = warningsOf(SECONDS_OF_A_DAY, { ...SECONDS_OF_A_DAY, maxKeys: 5_000 })
  assert.is(warnings.length, 1)
  assert.match(
    warnings[0]!,
    /^MillraceWarning: MILLRACE_LARGE_ARENA: maxKeys 4000 with 86400 buckets take up to 1\.8 GiB/,
  )
  assert.is(granularityIn(warnings[0]!), '2s')
})

for (const options of [
  SECONDS_OF_A_DAY,
  { limit: 5, window: '1h', granularity: '1s', maxKeys: 100_000 },
  { limit: 5, window: '1m', maxKeys: 6_000_000 },
  { limit: 5, window: '1d', granularity: '1s', rangeSum: 'fenwick', maxKeys: 4_000 },
] as const) {
  test(`the granularity in the warning makes the arena small enough: ${JSON.stringify(options)}`, () => {
    const granularity = granularityIn(warningsOf(options)[0]!) as '2s'
    const { bytes } = createLimiter({ ...options, granularity }).stats()
    assert.ok(bytes <= 2 ** 30 && bytes > 2 ** 28, `${granularity}: ${bytes} bytes`)
  })
}

test('the warning suggests fewer keys if no granularity makes the arena small enough', () => {
  const [warning] = warningsOf({ limit: 5, window: '1m', granularity: '1m', maxKeys: 30_000_000 })
  assert.match(warning!, /; maxKeys 1\d{7} at a granularity of the whole window would bring it under 1 GiB$/)
})

test('an arena of 1 GiB or less causes no warning', () => {
  assert.equal(
    warningsOf({ limit: 5, window: '1m' }, { limit: 5, window: '1d', granularity: '1s', maxKeys: 2_000 }),
    [],
  )
})

test.run()
