/** A piscina task that makes one decision: the alternative to the pool engine. */
import { workerData } from 'node:worker_threads'
import { attachLimiter, type DecisionFields, type SharedLimiter } from 'millrace'

const limiter = attachLimiter(workerData as SharedLimiter)

/** Returns the decision with all its figures, as the pool engine does. */
export default function decide(key: string): DecisionFields {
  return limiter.check(key).toJSON()
}
