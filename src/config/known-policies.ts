// Most keys have one of few policies. So the rules of equal texts are parsed and checked once: that takes longer than
// LMDB takes to find the text. Equal policies are also one object.
import { MillraceError } from '../core/errors.js'
import { documentIn, KnownPolicy, type Policy, parsePolicy } from './policy.js'

/** The texts of two generations are kept: those used since the last change, and those used before it. */
const GENERATION = 1_024
/** How `documentOf` begins. Other texts are parsed each time. */
const HEAD = /^\{"format":1,"version":([1-9]\d{0,15}),/
/** The rest might say it again, and would be right. */
const VERSION = '"version"'

export class KnownPolicies {
  #recent = new Map<string, Policy>()
  #older = new Map<string, Policy>()

  /** The document of a text: for `parsePolicy`. */
  documentOf(text: string): unknown {
    const head = HEAD.exec(text)
    const version = Number(head?.[1])
    if (head === null || !Number.isSafeInteger(version)) return documentIn(text)
    const rest = text.slice(head[0].length)
    const known = this.#recent.get(rest) ?? this.#older.get(rest)
    if (known === undefined) return this.#learn(text, rest)
    this.#keep(rest, known)
    return new KnownPolicy(known, version)
  }

  #learn(text: string, rest: string): unknown {
    const document = documentIn(text)
    if (rest.includes(VERSION)) return document
    try {
      const { policy, version } = parsePolicy(document, 'policy')
      this.#keep(rest, frozen(policy))
      return new KnownPolicy(policy, version)
    } catch (error) {
      if (error instanceof MillraceError) return document // raised again, with the name of the key
      throw error
    }
  }

  #keep(rest: string, policy: Policy): void {
    if (this.#recent.has(rest)) return
    if (this.#recent.size === GENERATION) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(rest, policy)
  }
}

function frozen(policy: Policy): Policy {
  if ('rules' in policy) for (const rule of Object.freeze(policy.rules)) Object.freeze(rule)
  return Object.freeze(policy)
}
