// Runs test files, each in a process of its own, as many at a time as there are processors:
//
//   npm test                      the quick tests
//   npm test -- memory limiter    those whose path matches one of these patterns
//   node build/test/run.js --full [PATTERN ...]    the tests that take longer
//
// Ends with the plain line that a script can look for: N passed, N failed, N skipped.
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readFlag } from './long-runs/flags.js'
import { isLeftOut } from './native/sides.js'
import { testFiles } from './run/files.js'
import { lastLine, type Outcome, outcomeOf, totalsOf } from './run/outcome.js'
import { plan, type Run, type Side } from './run/plan.js'
import { runGroup } from './run/process.js'
import { doAll } from './run/queue.js'
import { Report } from './run/report.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    root: { type: 'string', default: fileURLToPath(new URL('../../', import.meta.url)) },
    jobs: { type: 'string' },
    limit: { type: 'string' },
  },
})
const size = values.full ? 'full' : 'quick'
const jobs = readFlag('jobs', values.jobs, { fallback: availableParallelism(), least: 1, most: 256 })
/** A file that runs for more seconds hangs; the longest takes a tenth of that on a quiet machine. */
const limit = readFlag('limit', values.limit, { fallback: values.full ? 1_200 : 180, least: 1, most: 86_400 })

const patterns = positionals.map((pattern) => new RegExp(pattern))
const files = testFiles(values.root)
const runs = plan(files, { patterns, size, sides: sidesHere() })
const report = new Report(process.stdout, runs.length)
const outcomes: Outcome[] = []
await doAll(runs, jobs, judge)

if (runs.length === 0) report.note(`no ${size} test file matches ${positionals.join(' or ')}`)
if (size === 'quick') {
  report.slow(outcomes)
  const rest = plan(files, { patterns, size: 'full', sides: ['typescript'] })
  if (patterns.length > 0 && rest.length > 0)
    report.note(`npm run test:full has more: ${rest.map(({ file }) => file.name).join(', ')}`)
}
const totals = totalsOf(outcomes)
console.log(lastLine(totals))
process.exitCode = totals.failed > 0 || totals.passed + totals.skipped === 0 ? 1 : 0

/** Both, unless MILLRACE_NATIVE asks for one, or the addon has not been built. */
function sidesHere(): Side[] {
  const { MILLRACE_NATIVE: wish } = process.env
  if (wish === '0' || (wish !== '1' && isLeftOut())) return ['typescript']
  return wish === '1' ? ['addon'] : ['typescript', 'addon']
}

async function judge(run: Run): Promise<void> {
  report.started(run)
  const env = { ...process.env, MILLRACE_TESTS: size, MILLRACE_NATIVE: run.side === 'addon' ? '1' : '0' }
  const ended = await runGroup([process.execPath, run.file.path], env, 1_000 * limit)
  const outcome = outcomeOf(run, ended)
  outcomes.push(outcome)
  report.ended(outcome)
}
