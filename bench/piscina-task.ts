/** One decision, as a task of piscina: what the pool engine is measured against. */
import { workerData } from 'node:worker_threads'
import { attachLimiter, type DecisionFields, type SharedLimiter } from 'millrace'

const limiter = attachLimiter(workerData as SharedLimiter)

/** With all its figures, as the pool engine gives them. */
export default function decide(key: string): DecisionFields {
  return limiter.check(key).toJSON()
}
