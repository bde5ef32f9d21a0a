import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Benchmark, type Contender, type Effort, timesOf } from '../benchmark.js'
import { withDirectWords } from '../direct-words.js'
import { cached, inOrder, randomOrder } from '../keys.js'
import { type Millrace, millrace, millraceHandles } from '../millrace.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000
const BUILT = fileURLToPath(new URL('../../../esm/', import.meta.url))
/** Copies go below the package, so that they find its dependencies. */
const BUILD = fileURLToPath(new URL('../../', import.meta.url))

type Variant = 'through words.ts' | 'written out'

const course = ({ operations }: Effort) => ({
  keyAt: cached(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

export const words: Benchmark = {
  title: 'shared memory through the functions of memory/words.ts, and with their bodies written out',
  units: { ns: 'nanoseconds a decision' },
  contenders: [
    byKey('through words.ts'),
    byKey('written out'),
    byHandle('through words.ts'),
    byHandle('written out'),
  ],
  goals: ['check(key)', 'check(handle)'].map((call) => ({
    what: `${call}: through words.ts / written out`,
    unit: 'x',
    value: timesOf(`${call} through words.ts`, `${call} written out`),
  })),
}

function byKey(variant: Variant): Contender {
  return {
    name: `check(key) ${variant}`,
    measure: (effort) => withCopy(variant, (copy) => timeDecisions(course(effort), millrace(KEYS, copy))),
  }
}

function byHandle(variant: Variant): Contender {
  return {
    name: `check(handle) ${variant}`,
    measure: (effort) =>
      withCopy(variant, (copy) => {
        const { handleAt, decide } = millraceHandles(cached(KEYS), KEYS, copy)
        return timeDecisions({ ...course(effort), keyAt: handleAt }, decide)
      }),
  }
}

/** Both variants run from a copy, so that they differ in nothing else. */
async function withCopy<Result>(variant: Variant, measure: (copy: Millrace) => Result): Promise<Result> {
  const copy = await mkdtemp(join(BUILD, 'words-'))
  try {
    await cp(BUILT, copy, { recursive: true })
    if (variant === 'written out') await writeOut(copy)
    return measure((await import(join(copy, 'index.js'))) as Millrace)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function writeOut(folder: string): Promise<void> {
  let changed = 0
  for (const entry of await readdir(folder, { recursive: true })) {
    if (!entry.endsWith('.js')) continue
    const path = join(folder, entry)
    const code = await readFile(path, 'utf8')
    const direct = withDirectWords(code)
    if (direct === code) continue
    await writeFile(path, direct)
    changed++
  }
  if (changed === 0) throw new Error(`nothing below ${BUILT} goes through memory/words.js`)
}
