// Mutation testing of the protocol's code: `npm run mutate`.
import { parseArgs } from 'node:util'
import { readFlag } from '../long-runs/flags.js'
import { progressOn } from '../long-runs/progress.js'
import type { Verdict } from './explorer.js'
import { Judges } from './judges.js'
import { allMutations, type Mutation } from './mutations.js'
import { survivors } from './survivors.js'

const USAGE = `npm run mutate -- [NAME] [options]

  NAME          only mutations whose names match this regular expression: npm run mutate -- 'ring.js #broom'
  --every N     each Nth of them (1)
  --explained   judges those instead that are explained as survivors: whether they do survive
  --jobs N      so many at a time (1)
  --walks N     random schedules for each that the scenarios don't notice (500)
  --seed N      of the random schedules (1)
  --all         prints who noticed each
  --list        prints the mutations, and judges none`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    every: { type: 'string' },
    explained: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    walks: { type: 'string' },
    seed: { type: 'string' },
    all: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const most = Number.MAX_SAFE_INTEGER
const every = readFlag('every', values.every, { fallback: 1, least: 1, most })
const jobs = readFlag('jobs', values.jobs, { fallback: 1, least: 1, most: 64 })
const walks = readFlag('walks', values.walks, { fallback: 500, least: 0, most })
const seed = readFlag('seed', values.seed, { fallback: 1, least: 0, most })
const explained = new Set(survivors.flatMap(({ mutations }) => mutations))

if (values.help) console.log(USAGE)
else {
  const all = await allMutations()
  const pattern = new RegExp(positionals[0] ?? '')
  const chosen = all
    .filter(({ name }) => pattern.test(name) && (!values.explained || explained.has(name)))
    .filter((_, i) => i % every === 0)
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
  console.log(`${left.length} of ${all.length} mutations, random schedules by seed ${seed}`)
  const progress = progressOf(left.length, counts)
  const next = left.values()
  const working = left.length === 0 ? 0 : jobs
  await Promise.all(Array.from({ length: working }, () => judgeSome(left[0]!, next, tell, progress)))
  const survive = counts.explained + counts.unexplained + counts.unjudged
  const unexplained = counts.unexplained === 0 ? 'all listed' : `${counts.unexplained} unexplained`
  const taken = counts.unjudged > 0 ? `, ${counts.unjudged} of them not judged again` : ''
  console.log(
    `${chosen.length} mutations: ${counts.load} killed at the first look, ${counts.explorer} by the explorer, ${counts.test} by tests, ${counts.hang} hang, ${survive} survive (${unexplained}${taken}), ${obsolete.length + wronglyExplained} wrong explanations`,
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
  const judges = await Judges.create({ walks, seed, jobs }, shipped, console.log)
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
  const progress = progressOn(process.stderr)
  const started = performance.now()
  let done = 0
  return () => {
    done++
    const seconds = Math.round((performance.now() - started) / 1000)
    progress.at(`${done} of ${total}, ${counts.unexplained} unexplained, ${seconds} s`)
    if (done === total) progress.clear()
  }
}
