// A thread that plays mutated code: it may never come back, and is then ended from outside.
import { parentPort } from 'node:worker_threads'
import { type Built, type Edit, playableCopy, SMALL_BLOCKS, waysPerSet } from '../explore/copy.js'
import { scenarios } from '../explore/scenarios/index.js'
import { search } from '../explore/search.js'
import { walk } from '../explore/walk.js'
import { type Answer, type Request, SMOKE, WALK } from './request.js'
import { smoke } from './smoke.js'

/** All that most scenarios have at one preemption (or, where a thread may die, at none); of the few larger ones, so many. */
const MOST_STATES = 20_000

parentPort!.on('message', async (request: Request) => {
  let part = ''
  const say = (answer: Answer) => parentPort!.postMessage(answer)
  const at = (next: string) => {
    part = next
    say({ kind: 'at', part })
  }
  try {
    const what = await firstWrong(request, at)
    say({ kind: 'done', ...(what === undefined ? {} : { noticed: { part, what } }) })
  } catch (error) {
    say({ kind: 'done', noticed: { part, what: String(error) } })
  }
})

async function firstWrong(request: Request, at: (part: string) => void): Promise<string | undefined> {
  const { file, original, code, walks, seed } = request
  const mutation: Edit = { file, find: original, replace: code }
  at(SMOKE)
  const whole = await playableCopy([mutation])
  smoke(whole)
  const built = await narrow(mutation)
  for (const name of built ? request.scenarios : []) {
    at(name)
    const scenario = scenarios[name]!
    const preemptions = scenario.deaths ? 0 : 1
    const { wrong } = search(built!, scenario, { preemptions, mostStates: MOST_STATES })
    if (wrong !== undefined) return wrong
  }
  if (walks === 0) return undefined
  at(WALK)
  return walk(whole, { schedules: walks, seed }).wrong
}

/** With the small numbers that the scenarios need; undefined where it is one of these that is mutated. */
async function narrow(mutation: Edit): Promise<Built | undefined> {
  const edits = [waysPerSet(1), ...SMALL_BLOCKS]
  if (edits.some(({ file, find }) => mutation.file === file && !mutation.replace.includes(find)))
    return undefined
  return playableCopy([mutation, ...edits])
}
