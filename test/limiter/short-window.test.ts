// run: typescript
// The warning for a window under a second that is a number. It is printed once in a thread, so each case has a process
// of its own.
import { execFileSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

/** The warnings of a process that runs `code`. */
function warningsOf(code: string): string[] {
  const script = `
    import { createLimiter } from 'millrace'
    import { memoryConfig } from 'millrace/config/memory'
    import { rateLimit } from 'millrace/http'
    import { MillraceStore } from 'millrace/compat/express-rate-limit'
    const warnings = []
    process.on('warning', ({ name, code, message }) => warnings.push([name, code, message].join(': ')))
    ${code}
    setImmediate(() => console.log(JSON.stringify(warnings)))`
  const cwd = new URL('../../../', import.meta.url)
  const args = ['--no-warnings', '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: 'utf8' }))
}

const WARNING =
  "MillraceWarning: MILLRACE_SHORT_WINDOW: window: 60 is 60 milliseconds, as each number is. Write window: '60s' " +
  "if these are seconds, window: '60ms' if they are milliseconds"

const MISTAKES = [
  'createLimiter({ limit: 5, window: 60 }); createLimiter({ limit: 5, window: 30 })',
  "createLimiter({ limit: 5, window: '1m' }).update('default', { window: 60 })",
  "createLimiter({ rules: [{ name: 'a', limit: 5, window: 60 }, { name: 'b', limit: 5, window: 900 }] })",
  'rateLimit({ limit: 5, window: 60 })',
  "rateLimit({ routes: { '/a': { limit: 5, window: 60 } } })",
  'memoryConfig({ a: { limit: 5, window: 60 } })',
]
for (const code of MISTAKES) {
  test(`one warning that a window under a second is in milliseconds: ${code}`, () => {
    assert.equal(warningsOf(code), [WARNING])
  })
}

const MEANT = [
  "createLimiter({ limit: 5, window: '60ms' }); createLimiter({ limit: 5, window: 1000 })",
  "createLimiter({ limit: 5, window: '1s', granularity: 100 })",
  "rateLimit({ limit: 5, window: '500ms', ban: { after: 3, for: '1m' } })",
  "for (const algorithm of ['fixed-window', 'sliding-window']) new MillraceStore({ algorithm }).init({ windowMs: 500, limit: 5 })",
]
for (const code of MEANT) {
  test(`no warning: ${code}`, () => assert.equal(warningsOf(code), []))
}

test.run()
