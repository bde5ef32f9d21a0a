// Load at a steady rate, what came of it, and how full its windows are.
import { setTimeout } from 'node:timers/promises'
import type { Balanced } from './balanced.js'

const CALLERS = 4
/** After each answer, so that the machine has time for the servers: a few hundred requests a second. */
const PAUSE_MS = 10

/** An answer. Its kind is the same for all that mean the same to a caller. */
export interface Answered {
  readonly key: string
  readonly kind: string
  readonly allowed: boolean
  readonly sentMs: number
  readonly receivedMs: number
}

export interface Load {
  readonly answers: readonly Answered[]
  /** Ends it. Resolves with all answers. */
  end(): Promise<readonly Answered[]>
}

/** Asks by a key, until it is ended. */
export function paced(ask: (key: string) => Promise<Balanced>, keys: readonly string[]): Load {
  const answers: Answered[] = []
  let isDone = false
  let asked = 0
  const caller = async () => {
    while (!isDone) {
      const key = keys[asked++ % keys.length]!
      const sentMs = performance.now()
      const answer = await ask(key)
      const allowed = answer.status === 200 && answer.body.allowed
      answers.push({ key, kind: kindOf(answer), allowed, sentMs, receivedMs: performance.now() })
      await setTimeout(PAUSE_MS)
    }
  }
  const callers = Array.from({ length: CALLERS }, caller)
  return {
    answers,
    async end() {
      isDone = true
      await Promise.all(callers)
      return answers
    },
  }
}

/** What an answer means: `allowed by redis`, `503 ERR_MILLRACE_UNDECIDED`, `502 of the balancer`, `lost`. */
export function kindOf({ status, body }: Balanced): string {
  if (status === 200) return `${body.allowed ? 'allowed' : 'refused'} by ${body.source ?? 'its engine'}`
  return status === 0 ? 'lost' : `${status} ${body?.code ?? 'of the balancer'}`
}

/** How many answers of each kind there are. */
export function tally(answers: readonly Answered[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { kind } of answers) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** A time in which something was harmed. */
export interface Harm {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * How many admissions of one key are over the limit in a window that surely had them, and the most in a window that any
 * harm has touched.
 */
export function judged(
  answers: readonly Answered[],
  {
    limit,
    windowMs,
    harms,
  }: { readonly limit: number; readonly windowMs: number; readonly harms: readonly Harm[] },
): { over: number; most: number; mostInHarm: number } {
  const byKey = new Map<string, Answered[]>()
  for (const answer of answers) {
    if (!answer.allowed) continue
    const own = byKey.get(answer.key) ?? []
    byKey.set(answer.key, own)
    own.push(answer)
  }
  let [over, most, mostInHarm] = [0, 0, 0]
  for (const admitted of byKey.values()) {
    admitted.sort((a, b) => a.sentMs - b.sentMs)
    for (const [i, { sentMs }] of admitted.entries()) {
      const endMs = sentMs + windowMs
      let count = 0
      for (let j = i; j < admitted.length && admitted[j]!.sentMs < endMs; j++)
        if (admitted[j]!.receivedMs < endMs) count++
      if (harms.some(({ fromMs, toMs }) => fromMs < endMs && toMs > sentMs))
        mostInHarm = Math.max(mostInHarm, count)
      else {
        most = Math.max(most, count)
        over += Math.max(0, count - limit)
      }
    }
  }
  return { over, most, mostInHarm }
}
