// Mutation testing of the protocol's code: `npm run mutate`.
import { parseArgs } from 'node:util'
import type { Verdict } from './explorer.js'
import { Judges } from './judges.js'
import { allMutations, type Mutation } from './mutations.js'
import { notLookedAtYet, survivors } from './survivors.js'

const USAGE = `npm run mutate -- [NAME] [options]

  NAME          only mutations whose names match this regular expression: npm run mutate -- 'ring.js #broom'
  --every N     each Nth of them (1)
  --explained   judges those, too, that are explained as survivors: whether they do survive
  --jobs N      so many at a time (1)
  --walks N     random schedules for each that the scenarios don't notice (500)
  --seed N      of the random schedules (1)
  --all         prints who noticed each
  --list        prints the mutations, and judges none`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    every: { type: 'string', default: '1' },
    explained: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '1' },
    walks: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    all: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const PROGRESS_EVERY_MS = 30_000
const explained = new Set([...survivors.flatMap(({ mutations }) => mutations), ...notLookedAtYet])

if (values.help) console.log(USAGE)
else {
  const all = await allMutations()
  const pattern = new RegExp(positionals[0] ?? '')
  const chosen = all
    .filter(({ name }) => pattern.test(name))
    .filter((_, i) => i % Math.max(1, Number(values.every)) === 0)
  if (values.list) for (const { name } of chosen) console.log(name)
  else await judgeAll(all, chosen)
}

async function judgeAll(all: readonly Mutation[], chosen: readonly Mutation[]): Promise<void> {
  const counts = { load: 0, explorer: 0, test: 0, hang: 0, explained: 0, unexplained: 0, unjudged: 0 }
  const names = new Set(all.map(({ name }) => name))
  const obsolete = [...explained].filter((name) => !names.has(name))
  for (const name of obsolete) console.log(`EXPLAINED, but is no mutation any more: ${name}`)
  let wronglyExplained = 0
  const tell = ({ name }: Mutation, verdict: Verdict | undefined) => {
    const isExplained = explained.has(name)
    if (verdict === undefined) counts[isExplained ? 'explained' : 'unexplained']++
    else counts[verdict.by]++
    if (verdict === undefined && !isExplained) console.log(`SURVIVES ${name}`)
    if (verdict !== undefined && isExplained) {
      wronglyExplained++
      console.log(`EXPLAINED, but noticed by ${verdict.what}: ${name}`)
    } else if (verdict !== undefined && values.all) console.log(`${verdict.by} ${name}\n    ${verdict.what}`)
  }
  const left = chosen.filter(({ name }) => values.explained || !explained.has(name))
  counts.unjudged = chosen.length - left.length
  console.log(`${left.length} of ${all.length} mutations, random schedules by seed ${values.seed}`)
  const progress = progressOf(left.length, counts)
  const next = left.values()
  const jobs = left.length === 0 ? 0 : Number(values.jobs)
  await Promise.all(Array.from({ length: jobs }, () => judgeSome(left[0]!, next, tell, progress)))
  const survive = counts.explained + counts.unexplained + counts.unjudged
  const unexplained = counts.unexplained === 0 ? 'all listed' : `${counts.unexplained} unexplained`
  const taken = counts.unjudged > 0 ? `, ${counts.unjudged} of them not judged again` : ''
  console.log(
    `${chosen.length} mutations: ${counts.load} killed at the first look, ${counts.explorer} by the explorer, ${counts.test} by tests, ${counts.hang} hang, ${survive} survive (${unexplained}${taken}, ${notLookedAtYet.length} on the list of those not looked at yet), ${obsolete.length + wronglyExplained} wrong explanations`,
  )
  process.exitCode = counts.unexplained + obsolete.length + wronglyExplained > 0 ? 1 : 0
}

async function judgeSome(
  first: Mutation,
  next: Iterable<Mutation>,
  tell: (mutation: Mutation, verdict: Verdict | undefined) => void,
  progress: () => void,
): Promise<void> {
  const shipped = { ...first, code: () => first.original }
  const options = { walks: Number(values.walks), seed: Number(values.seed), jobs: Number(values.jobs) }
  const judges = await Judges.create(options, shipped, console.log)
  try {
    for (const mutation of next) {
      tell(mutation, await judges.judge(mutation))
      progress()
    }
  } finally {
    await judges.close()
  }
}

function progressOf(total: number, counts: Readonly<Record<string, number>>): () => void {
  const started = performance.now()
  let done = 0
  let told = started
  return () => {
    done++
    const now = performance.now()
    const line = `${done} of ${total}, ${counts.unexplained} unexplained, ${Math.round((now - started) / 1000)} s`
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}${done === total ? '\n' : ''}`)
    else if (now - told >= PROGRESS_EVERY_MS) {
      told = now
      console.error(line)
    }
  }
}
