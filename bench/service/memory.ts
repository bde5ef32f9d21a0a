import { type Benchmark, figureOf } from '../benchmark.js'
import { startServer } from './start-server.js'

const KEYS = 1_000_000
const BATCH = 1_000
const EMPTY = 'empty'
const FULL = 'a million keys'

/** The memory of an engine after as many checks as there are keys. @throws Error if one is not an admission */
async function memoryAfter(keyAt: (i: number) => string): Promise<{ mb: number }> {
  const server = await startServer('engine', KEYS)
  for (let i = 0; i < KEYS; i += BATCH) {
    const checks = Array.from({ length: BATCH }, (_, j) => ({ key: keyAt(i + j) }))
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/check`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ checks }),
    })
    const { decisions } = (await answer.json()) as { decisions: readonly { allowed: boolean }[] }
    if (!decisions.every(({ allowed }) => allowed)) throw new Error('a refusal')
  }
  const { rss } = await server.state()
  await server.stop()
  return { mb: rss / 1e6 }
}

export const serviceMemory: Benchmark = {
  title: `resident memory of an engine with room for a million keys, after a million checks`,
  units: { mb: 'MB' },
  rounds: { full: 2, quick: 1 },
  contenders: [
    { name: EMPTY, measure: () => memoryAfter((i) => `user:${1_000_000 + (i % BATCH)}`) },
    { name: FULL, measure: () => memoryAfter((i) => `user:${1_000_000 + i}`) },
  ],
  goals: [
    {
      target: 'S4',
      label: 'a million keys over an empty engine, for each key',
      unit: 'bytes',
      value: (round) => ((figureOf(round, FULL, 'mb') - figureOf(round, EMPTY, 'mb')) * 1e6) / KEYS,
      atMost: 400,
    },
  ],
}
