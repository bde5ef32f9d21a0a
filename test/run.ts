// Runs test files, one process more at a time than there are processors. Most have a process of their own:
//
//   npm test                      the quick tests
//   npm test -- memory limiter    the quick tests whose path matches one of these patterns
//   node build/test/run.js --full [PATTERN ...]    the tests that take longer
//   node build/test/run.js --long [PATTERN ...]    those of `npm run test:long`
//   node build/test/run.js --full --shard 2/3      the second third of them
//
// Failed files are named before the last line, `N passed, N failed, N skipped`, which scripts can parse.
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readFlag } from './long-runs/flags.js'
import { isLeftOut } from './native/sides.js'
import { testFiles } from './run/files.js'
import { lastLine, namesOf, type Outcome, outcomeOf, SUMMARY, totalsOf } from './run/outcome.js'
import { nodeOptionsOf, plan, type Run, type Side } from './run/plan.js'
import { runGroup } from './run/process.js'
import { runAll } from './run/queue.js'
import { Report } from './run/report.js'
import { ofShard, readShard } from './run/shard.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
    root: { type: 'string', default: fileURLToPath(new URL('../../', import.meta.url)) },
    jobs: { type: 'string' },
    limit: { type: 'string' },
    linger: { type: 'string' },
    shard: { type: 'string', default: '1/1' },
  },
})
const size = values.long ? 'long' : values.full ? 'full' : 'quick'
/** One more than the processors, because some files mostly wait. */
const jobs = readFlag('jobs', values.jobs, { fallback: availableParallelism() + 1, least: 1, most: 256 })
/** The timeout of a process, in seconds. On an idle machine the longest one takes a twentieth of it. */
const limit = readFlag('limit', values.limit, {
  fallback: { quick: 600, full: 1_200, long: 7_200 }[size],
  least: 1,
  most: 86_400,
})

/** A process has this many seconds to end after its tests. */
const linger = readFlag('linger', values.linger, { fallback: 60, least: 1, most: 86_400 })

const TOGETHER = fileURLToPath(new URL('run/together.js', import.meta.url))
const patterns = positionals.map((pattern) => new RegExp(pattern))
const files = testFiles(values.root)
const all = plan(files, { patterns, size, sides: selectedSides() })
const runs = ofShard(all, readShard(values.shard))
const report = new Report(process.stdout, runs.length)
const outcomes: Outcome[] = []
await runAll(runs, jobs, runFile)

if (runs.length === 0) report.note(`no ${size} test file matches ${positionals.join(' or ')}`)
if (size === 'quick') {
  report.listSlow(outcomes)
  const rest = plan(files, { patterns, size: 'full', sides: ['typescript'] })
  if (patterns.length > 0 && rest.length > 0)
    report.note(`npm run test:full also runs: ${rest.map(namesOf).join(', ')}`)
}
report.noteProcessorTime(outcomes)
report.listFailed(outcomes)
const totals = totalsOf(outcomes)
console.log(lastLine(totals))
process.exitCode = totals.failed > 0 || totals.passed + totals.skipped === 0 ? 1 : 0

/** Both sides, or one if MILLRACE_NATIVE selects it or the addon is not built. */
function selectedSides(): Side[] {
  const { MILLRACE_NATIVE: selected } = process.env
  if (selected === '0' || (selected !== '1' && isLeftOut())) return ['typescript']
  return selected === '1' ? ['addon'] : ['typescript', 'addon']
}

/** Whether its files also run on the other side in this command. */
function isOnBothSides({ files, side }: Run): boolean {
  return all.some((other) => other.files[0] === files[0] && other.side !== side)
}

async function runFile(run: Run): Promise<void> {
  report.started(run)
  const env = {
    ...process.env,
    MILLRACE_TESTS: size,
    MILLRACE_NATIVE: run.side === 'addon' ? '1' : '0',
    MILLRACE_BOTH_SIDES: isOnBothSides(run) ? '1' : '0',
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${nodeOptionsOf(run)}`.trim(),
  }
  const paths = run.files.map(({ path }) => path)
  const program = paths.length > 1 ? [TOGETHER, ...paths] : paths
  const watch = { isDone: SUMMARY, lingerMs: 1_000 * linger }
  const ended = await runGroup([process.execPath, ...program], env, 1_000 * limit, watch)
  const outcome = outcomeOf(run, ended)
  outcomes.push(outcome)
  report.ended(outcome)
}
