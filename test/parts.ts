// Runs the parts of the full or the long tests, each with a time budget:
//
//   npm run test:full                  a quarter of an hour
//   npm run test:full -- soak attack   the parts whose names match one of these patterns
//   npm run test:full -- --all         also the checks of the addon that have passed on these sources (`run/checked.ts`)
//   npm run test:full -- --shard 1/2   a half: every second file of tests, and some of the other parts
//   npm run test:long                  hours
//
// The output of a part goes to .cache/parts/NAME.log; a failed part also prints its last lines. The last line
// is that of `npm test`, where a part that is not a run of test files counts as one test.
import { createWriteStream, mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './package/root.js'
import { contentHash, isChecked, recordChecked } from './run/checked.js'
import { lastLine, type Totals } from './run/outcome.js'
import { FULL, LONG, type Part, sizesFor } from './run/parts.js'
import { runGroup } from './run/process.js'
import { runAll } from './run/queue.js'
import { partsOfShard, readShard } from './run/shard.js'

const SIZES: Readonly<Record<string, readonly Part[]>> = { full: FULL, long: LONG }
/** The timeout of a part, in budgets. */
const TIMEOUT_BUDGETS = 6
const FAILURE_LINES = 60

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { all: { type: 'boolean', default: false }, shard: { type: 'string', default: '1/1' } },
})
const [size = 'full', ...names] = positionals
const patterns = names.map((name) => new RegExp(name))
/** The hash of what the checks of the addon test, before they begin. */
const sources = contentHash(root)
const isShare = size === 'full' && !values.all && isChecked(root, sources)
const parts = partsOfShard(sizesFor(SIZES[size]!, isShare), readShard(values.shard)).filter(
  ({ name }) => patterns.length === 0 || patterns.some((pattern) => pattern.test(name)),
)
const logs = join(root, '.cache', 'parts')
mkdirSync(logs, { recursive: true })
process.chdir(root)

const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
const failed: string[] = []
const passed = new Set<string>()
const startedMs = performance.now()
await runAll(
  parts.map((part) => ({ ...part, isAlone: part.isAlone ?? false, isFirst: false })),
  availableParallelism(),
  runPart,
)
if (parts.length === 0)
  console.log(`no part has such a name; the parts are ${SIZES[size]!.map(({ name }) => name).join(', ')}`)
if (isShare) console.log('the checks of the addon have passed in full on these sources: a share of them ran')
else if (size === 'full') recordIfAllPassed()
console.log(`${parts.length} parts in ${Math.round((performance.now() - startedMs) / 1_000)} s`)
if (failed.length > 0) console.log(`failed: ${failed.join(', ')}`)
console.log(lastLine(totals))
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0

/** Records the sources if each check of the addon has passed in full, and nobody has changed them meanwhile. */
function recordIfAllPassed(): void {
  const checks = FULL.filter(({ share }) => share !== undefined)
  if (!checks.every(({ name }) => passed.has(name)) || contentHash(root) !== sources) return
  recordChecked(root, sources)
  console.log('the checks of the addon have passed in full: commit .ci/checked.json')
}

async function runPart({ name, args, env, budgetSeconds }: Part): Promise<void> {
  console.log(`     ${name} (budget ${budgetSeconds} s)`)
  const log = createWriteStream(join(logs, `${name}.log`))
  const limitMs = 1_000 * TIMEOUT_BUDGETS * budgetSeconds
  const onOutput = (text: string) => void log.write(text)
  const ended = await runGroup([process.execPath, ...args], { ...process.env, ...env }, limitMs, { onOutput })
  log.end()
  const { output, code, isTimedOut, left, seconds } = ended
  const lines = output.trimEnd().split('\n')
  const isOver = seconds > budgetSeconds ? `, over its budget of ${budgetSeconds} s` : ''
  const problem = isTimedOut
    ? ' timed out; it and its processes were killed'
    : left.length > 0
      ? ` left processes running: ${left.join('; ')}`
      : ''
  const hasFailed = code !== 0 || problem !== ''
  if (hasFailed) failed.push(name)
  else passed.add(name)
  console.log(`${hasFailed ? 'FAIL' : 'ok  '} ${name}${problem} (${seconds.toFixed(0)} s${isOver})`)
  console.log(hasFailed ? lines.slice(-FAILURE_LINES).join('\n') : `     ${lines.at(-1)}`)
  const counts = /^(\d+) passed, (\d+) failed, (\d+) skipped$/.exec(lines.at(-1)!)
  totals.passed += counts ? Number(counts[1]) : hasFailed ? 0 : 1
  totals.failed += counts && Number(counts[2]) > 0 ? Number(counts[2]) : hasFailed ? 1 : 0
  totals.skipped += counts ? Number(counts[3]) : 0
}
