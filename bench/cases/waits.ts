import { createLimiter } from 'millrace'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { collectGarbage } from '../timing.js'

const FEW = 5_000
const MANY = 50_000

const nameOf = (calls: number) => `${calls.toLocaleString('en')} calls`

/** The goals show how each time per call grows with the number of calls: 1 x is linear growth. */
export const waits: Benchmark = {
  title: 'pending wait() calls: the cost of an abort, a refund and an update for the event loop',
  units: {
    abortNs: 'one signal aborts all calls of one key, ns per call',
    refundUs: 'a refund of another key, us',
    updateNs: 'an update of the limit, each call with its own key, ns per call',
    turnMs: 'longest turn of the event loop during the update, ms',
  },
  contenders: [waiting(FEW), waiting(MANY)],
  goals: ['abortNs', 'updateNs', 'refundUs'].map((figure) => ({
    label: `${figure}: ${nameOf(MANY)} / ${nameOf(FEW)}`,
    unit: 'x' as const,
    value: ratioOf(nameOf(MANY), nameOf(FEW), figure),
  })),
}

function waiting(calls: number): Contender {
  return {
    name: nameOf(calls),
    async measure() {
      await timeAbort(FEW) // compiles the code
      collectGarbage()
      return { abortNs: await timeAbort(calls), ...(await timeChanges(calls)) }
    },
  }
}

async function timeAbort(calls: number): Promise<number> {
  const limiter = createLimiter({ limit: 1, window: '1h', maxKeys: 100 })
  limiter.check('key')
  const controller = new AbortController()
  const { signal } = controller
  const ended = Array.from({ length: calls }, () => limiter.wait('key', { signal }).catch(() => {}))
  await turn()
  const startMs = performance.now()
  controller.abort()
  await Promise.all(ended)
  const ms = performance.now() - startMs
  await limiter.close()
  return (ms * 1e6) / calls
}

async function timeChanges(calls: number) {
  const limiter = createLimiter({ limit: 2, window: '1h', maxKeys: 2 * calls })
  const used = limiter.check('another key')
  let served = 0
  for (let i = 0; i < calls; i++) {
    limiter.check(`${i}`, 2)
    limiter.wait(`${i}`).then(
      () => served++,
      () => {},
    )
  }
  await turn()
  collectGarbage()
  const startMs = performance.now()
  limiter.refund(used)
  await turn()
  const refundedMs = performance.now()
  limiter.update('default', { limit: 3 })
  let turnMs = 0
  let nowMs = refundedMs
  while (served < calls) {
    await turn()
    const beforeMs = nowMs
    nowMs = performance.now()
    turnMs = Math.max(turnMs, nowMs - beforeMs)
  }
  await limiter.close()
  const updateNs = ((nowMs - refundedMs) * 1e6) / calls
  return { refundUs: (refundedMs - startMs) * 1e3, updateNs, turnMs }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
