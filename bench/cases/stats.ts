import { createLimiter } from 'millrace'
import { type Benchmark, type Contender, type Effort, ratioOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { randomOrder } from '../keys.js'

const FEW = 1
const MANY = 100_000

/** Each timed call is a call of `stats()`; the key is not used. */
const workload = ({ operations }: Effort) => ({
  keyAt: (index: number) => index,
  order: randomOrder(1, Math.ceil(operations / 10)),
})

const withKeys = (keys: number): Contender =>
  direct(nameOf(keys), workload, () => {
    const limiter = createLimiter({ limit: 5, window: '1h', maxKeys: MANY })
    for (let i = 0; i < keys; i++) limiter.check(`key ${i}`)
    if (limiter.stats().keys !== keys) throw new Error(`${limiter.stats().keys} keys instead of ${keys}`)
    return () => limiter.stats().keys === keys
  })

const nameOf = (keys: number) => `stats() of ${keys.toLocaleString('en')} keys`

export const stats: Benchmark = {
  title: `one call of stats(), in a table for ${MANY.toLocaleString('en')} keys`,
  units: { ns: 'nanoseconds per call' },
  contenders: [withKeys(FEW), withKeys(MANY)],
  goals: [
    {
      label: `${nameOf(MANY)} / ${nameOf(FEW)}`,
      unit: 'x',
      value: ratioOf(nameOf(MANY), nameOf(FEW)),
    },
  ],
}
