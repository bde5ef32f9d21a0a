// run: own, modules
// Threads that do not answer, as the main thread finds them: it waits once, and keeps one sum of all that have ended.
import { BroadcastChannel } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Sample } from '../../src/metrics/metric-table.js'
import type { Samples } from '../../src/metrics/series.js'
import { ThreadCounts } from '../../src/metrics/threads.js'

const CHANNEL = 'millrace/metrics'

/** What a thread has: decisions, and keys in a table. */
const samplesOf = (decisions: number, name = 'api'): Samples => ({
  decisions: [[{ limiter: name, outcome: 'admitted' }, decisions]],
  'table.keys': [[{ limiter: name }, decisions]],
})

/** A thread as the main thread sees it. */
class Thread {
  readonly #port = new BroadcastChannel(CHANNEL)
  readonly #id: string
  /** What the main thread has kept of it, when it has not answered. */
  readonly leftOut: Promise<Samples>
  #noteLeftOut!: (counters: Samples) => void
  decisions = 0
  isSilent = false

  constructor(id: string) {
    this.#id = id
    this.leftOut = new Promise((resolve) => {
      this.#noteLeftOut = resolve
    })
    this.#port.onmessage = ({ data }: { data?: unknown } & object) => this.#hear(data as never)
    this.post({ kind: 'here' })
  }

  post(message: object): void {
    this.#port.postMessage({ ...message, from: this.#id })
  }

  /** As a thread that was terminated. */
  die(): void {
    this.#port.close()
  }

  #hear(message: { kind: string; ask?: string; from?: string; counters: Samples }): void {
    if (message.kind === 'left out' && message.from === this.#id) this.#noteLeftOut(message.counters)
    if (message.kind === 'ask' && !this.isSilent)
      this.post({ kind: 'counts', ask: message.ask, samples: samplesOf(this.decisions) })
  }
}

/** Counts, and how often a reading has waited in vain: it is late as soon as it waits. */
function countsOf(isLate: () => boolean) {
  const waits = { begun: 0, ended: 0 }
  const counts = new ThreadCounts((late) => {
    waits.begun++
    if (isLate()) late()
    return () => {
      waits.ended++
    }
  })
  return { counts, waits }
}

const sumOf = (all: readonly Samples[], name: string): number =>
  all.flatMap((samples) => samples[name] ?? []).reduce((sum, [, value]: Sample) => sum + (value as number), 0)

test('a reading waits once for a thread that does not answer, keeps its counters, and drops what is of the present', async () => {
  let isLate = false
  const { counts, waits } = countsOf(() => isLate)
  const thread = new Thread('silent')
  thread.decisions = 5
  assert.is(sumOf(await counts.read(), 'decisions'), 5)
  assert.equal(waits, { begun: 1, ended: 1 })
  thread.isSilent = true
  isLate = true
  for (let i = 0; i < 3; i++) {
    const all = await counts.read()
    assert.equal([sumOf(all, 'decisions'), sumOf(all, 'table.keys')], [5, 0])
    assert.equal(waits, { begun: 2, ended: 2 }, 'no other reading waits')
  }
  thread.die()
  counts.close()
})

test('a thread hears which of its counters the main thread has kept, and its late answers count no more', async () => {
  let isLate = false
  const { counts } = countsOf(() => isLate)
  const thread = new Thread('late')
  thread.decisions = 4
  await counts.read()
  thread.isSilent = true
  isLate = true
  await counts.read()
  assert.equal((await thread.leftOut).decisions, samplesOf(4).decisions)
  thread.post({ kind: 'counts', samples: samplesOf(9) })
  assert.is(sumOf(await counts.read(), 'decisions'), 4)
  thread.die()
  counts.close()
})

test('however many threads come, end or die, there is one sum of them, of at most 1,000 label sets', async () => {
  const { counts } = countsOf(() => true)
  for (let i = 0; i < 3_000; i++) {
    const thread = new Thread(`thread ${i}`)
    thread.decisions = 1
    thread.post({ kind: 'counts', samples: samplesOf(1, `limiter ${i}`) })
    if (i % 2 === 0) thread.post({ kind: 'gone' })
    thread.die()
    if (i % 100 === 0) await counts.read()
  }
  const all = await counts.read()
  assert.is(all.length, 1, 'of no thread')
  assert.is(sumOf(all, 'decisions'), 3_000)
  assert.ok(all[0]!.decisions!.length <= 1_000, `${all[0]!.decisions!.length}`)
  assert.equal(all[0]!['table.keys'] ?? [], [])
  counts.close()
})

test.run()
