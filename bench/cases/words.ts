import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Benchmark, type Contender, type Effort, ratioOf } from '../benchmark.js'
import { withDirectWords } from '../direct-words.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { type Millrace, millrace, millraceHandles } from '../millrace.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000
const BUILT = fileURLToPath(new URL('../../lib/', import.meta.url))
/** Copies are created below the package, so that they find its dependencies. */
const BUILD = fileURLToPath(new URL('../../', import.meta.url))

type Variant = 'through words.ts' | 'inlined'

const workload = ({ operations }: Effort) => ({
  keyAt: cachedKeys(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

export const words: Benchmark = {
  title: 'shared memory through the functions of memory/words.ts, and with these functions inlined',
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    byKey('through words.ts'),
    byKey('inlined'),
    byHandle('through words.ts'),
    byHandle('inlined'),
  ],
  goals: ['check(key)', 'check(handle)'].map((call) => ({
    label: `${call}: through words.ts / inlined`,
    unit: 'x',
    value: ratioOf(`${call} through words.ts`, `${call} inlined`),
  })),
}

function byKey(variant: Variant): Contender {
  return {
    name: `check(key) ${variant}`,
    measure: (effort) => withCopy(variant, (copy) => timeDecisions(workload(effort), millrace(KEYS, copy))),
  }
}

function byHandle(variant: Variant): Contender {
  return {
    name: `check(handle) ${variant}`,
    measure: (effort) =>
      withCopy(variant, (copy) => {
        const { handleAt, decide } = millraceHandles(cachedKeys(KEYS), KEYS, copy)
        return timeDecisions({ ...workload(effort), keyAt: handleAt }, decide)
      }),
  }
}

/** Both variants run from a copy, so that nothing else differs. */
async function withCopy<Result>(variant: Variant, measure: (copy: Millrace) => Result): Promise<Result> {
  const copy = await mkdtemp(join(BUILD, 'words-'))
  try {
    await cp(BUILT, copy, { recursive: true })
    if (variant === 'inlined') await inlineWords(copy)
    return measure((await import(join(copy, 'index.js'))) as Millrace)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function inlineWords(folder: string): Promise<void> {
  let changed = 0
  for (const entry of await readdir(folder, { recursive: true })) {
    if (!entry.endsWith('.js')) continue
    const path = join(folder, entry)
    const code = await readFile(path, 'utf8')
    const inlined = withDirectWords(code)
    if (inlined === code) continue
    await writeFile(path, inlined)
    changed++
  }
  if (changed === 0) throw new Error(`no file in ${BUILT} imports memory/words.js`)
}
