// run: own, also-full
// Limiters that are registered, used, taken out, closed and registered again, in threads that come and go, in random
// orders: a counter never falls, and is what was decided. What is of the present is that of open limiters.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { Actor, type Order, type Place } from './actor.js'
import { of, type Series, scrape } from './scrape.js'

const STEPS = sized({ quick: 60, full: 600 })
const DECISIONS = 'millrace_decisions_total'

/** What is known of a limiter. */
interface Known {
  readonly id: number
  readonly name: string
  decided: number
  /** Its decisions as far as they are registered. */
  counted: number
  state: 'registered' | 'outside' | 'closed'
  places: Place[]
}

interface Thread {
  readonly act: (order: Order) => Promise<void>
  readonly places: readonly Place[]
  readonly limiters: Known[]
  readonly worker: Worker | undefined
}

async function startThread(): Promise<Thread> {
  const worker = new Worker(new URL('./actor.js', import.meta.url), { workerData: 'actor' })
  await once(worker, 'message')
  const act = async (order: Order): Promise<void> => {
    worker.postMessage(order)
    await once(worker, 'message')
  }
  return { act, places: ['one', 'two', 'meter'], limiters: [], worker }
}

function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (const seed of [1, 2, 3]) {
  test(`in any order, counters are what was decided, and never fall: seed ${seed}`, async () => {
    const names = ['api', 'login'].map((name) => `${name} ${seed}`) // ended threads keep their counts in all registries
    const random = randomFrom(seed)
    const pick = <T>(all: readonly T[]): T | undefined => all[random(all.length)]
    const main = new Actor()
    const own: Thread = { act: (order) => main.act(order), places: ['one'], limiters: [], worker: undefined }
    let threads = [own]
    const all: Known[] = []
    let before: Series = new Map()
    let first: Series | undefined

    const held = ({ limiters }: Thread, name: string) =>
      limiters.find((each) => each.name === name && each.state === 'registered')

    /** The same limiter in another registry of the thread, or one of before, or a new one. */
    async function register(thread: Thread): Promise<void> {
      const name = pick(names)!
      const place = pick(thread.places)!
      let known = held(thread, name)
      if (known?.places.includes(place)) return
      if (known === undefined && random(2) === 0)
        known = thread.limiters.find((each) => each.name === name && each.state === 'outside')
      if (known === undefined) {
        known = { id: all.length, name, decided: 0, counted: 0, state: 'outside', places: [] }
        all.push(known)
        thread.limiters.push(known)
        await thread.act({ kind: 'open', id: known.id })
      }
      await thread.act({ kind: 'register', id: known.id, name, place })
      known.state = 'registered'
      known.places.push(place)
      known.counted = known.decided
    }

    async function decide({ limiters, act }: Thread): Promise<void> {
      const known = pick(limiters.filter(({ state }) => state !== 'closed'))
      if (known === undefined) return
      const times = 1 + random(5)
      await act({ kind: 'decide', id: known.id, times })
      known.decided += times
      if (known.state === 'registered') known.counted = known.decided
    }

    async function part({ limiters, act }: Thread, kind: 'close' | 'end'): Promise<void> {
      const known = pick(
        limiters.filter(({ state }) => state === 'registered' || (kind === 'close' && state === 'outside')),
      )
      if (known === undefined) return
      await act({ kind, id: known.id })
      known.state = kind === 'close' ? 'closed' : 'outside'
      known.places = []
    }

    async function stop({ worker }: Thread): Promise<void> {
      if (worker === undefined) return
      worker.postMessage(pick(['leave', 'exit']))
      await once(worker, 'exit')
      threads = threads.filter((each) => each.worker !== worker)
    }

    async function look(): Promise<void> {
      const series = await scrape(main.one)
      for (const [key, value] of before)
        if (key.includes('_total{')) assert.ok(series.get(key)! >= value, key)
      for (const name of names) {
        const decided = all
          .filter((each) => each.name === name)
          .reduce((sum, { counted }) => sum + counted, 0)
        const shown = Object.entries(of(series, DECISIONS)).filter(([labels]) =>
          labels.includes(`limiter=${name},`),
        )
        assert.is(
          shown.reduce((sum, [, value]) => sum + value, 0),
          decided,
          name,
        )
        const isOpen = threads.some((thread) => held(thread, name) !== undefined)
        assert.is(series.has(`millrace_table_keys{limiter=${name}}`), isOpen, `${name} is open`)
      }
      before = series
      first ??= series
    }

    await register(own)
    for (let step = 0; step < STEPS; step++) {
      const thread = pick(threads)!
      const choice = random(20)
      if (choice < 5) await register(thread)
      else if (choice < 12) await decide(thread)
      else if (choice < 14) await part(thread, 'close')
      else if (choice < 16) await part(thread, 'end')
      else if (choice < 17 && threads.length < 4) threads.push(await startThread())
      else if (choice < 18) await stop(thread)
      else await look()
    }
    await look()
    const counters = (series: Series) => [...series.keys()].filter((key) => key.includes('_total{')).length
    assert.ok(all.length > 5 && counters(before) >= counters(first!))
    for (const thread of [...threads]) await stop(thread)
    while (own.limiters.some(({ state }) => state !== 'closed')) await part(own, 'close')
    await look()
  })
}

test.run()
