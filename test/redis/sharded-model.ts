// What a sharded limiter promises by its definition: a model of each rule on each server, and the lists that count.
import type { LimiterRule } from 'millrace'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { ModelRule } from './exact-rules.js'

export interface Expected {
  readonly allowed: boolean
  readonly rules: readonly object[]
}

/** What was charged where. */
export interface Charge {
  readonly server: string
  /** How often the server had joined: what was charged before it left is not given back. */
  readonly joined: number
  readonly marks: readonly object[]
}

interface Past {
  readonly servers: readonly string[]
  readonly untilMs: number
}

interface Said {
  readonly server: string
  readonly allowed: boolean
  readonly figures: readonly { allowed: boolean; remaining: number; retryAfterMs: number; resetMs: number }[]
  readonly marks: readonly object[]
}

export class ShardedModel {
  readonly #rules: readonly LimiterRule[]
  readonly #changeMs: number
  /** By server and key. */
  readonly #models = new Map<string, ModelRule[]>()
  readonly #joined = new Map<string, number>()
  #present: readonly string[]
  #past: Past[] = []

  constructor(rules: readonly LimiterRule[], servers: readonly string[], withinMs: number) {
    this.#rules = rules
    const counting = rules.map(({ algorithm, windowMs, granularityMs }) =>
      algorithm === 'token-bucket' ? 3 * windowMs : windowMs + granularityMs,
    )
    this.#changeMs = Math.max(...counting) + withinMs
    this.#present = servers
  }

  /** How many lists before the present one count. */
  get changes(): number {
    return this.#past.length
  }

  reshard(servers: readonly string[], nowMs: number): void {
    this.#forget(nowMs)
    const known = this.#known()
    for (const server of servers)
      if (!known.has(server)) this.#joined.set(server, (this.#joined.get(server) ?? 0) + 1)
    this.#past.push({ servers: this.#present, untilMs: nowMs + this.#changeMs })
    this.#present = servers
  }

  serversOf(key: string, nowMs: number): string[] {
    this.#forget(nowMs)
    const lists = [...this.#past.map(({ servers }) => servers), this.#present]
    return [...new Set(lists.map((names) => new Rendezvous(names.map((name) => [name, name])).find(key)))]
  }

  peek(key: string, cost: number, nowMs: number): Expected {
    return mergedOf(this.serversOf(key, nowMs).map((server) => this.#ask(server, key, cost, nowMs, false)))
  }

  check(key: string, cost: number, nowMs: number): Expected & { readonly charges: readonly Charge[] } {
    const said: Said[] = []
    for (const server of this.serversOf(key, nowMs)) {
      said.push(this.#ask(server, key, cost, nowMs, true))
      if (said.at(-1)!.allowed) continue
      const earlier = said.slice(0, -1)
      for (const each of earlier) this.#giveBack(each, key, nowMs)
      break
    }
    const expected = mergedOf(said)
    const isCharged = expected.allowed && cost > 0
    const charges = said.map(({ server, marks }) => ({
      server,
      marks,
      joined: this.#joined.get(server) ?? 0,
    }))
    return { ...expected, charges: isCharged ? charges : [] }
  }

  /** The most that a rule got back at a server. */
  refund(charges: readonly Charge[], key: string, nowMs: number): number {
    this.#forget(nowMs)
    const known = this.#known()
    const open = charges.filter(
      ({ server, joined }) => known.has(server) && joined === (this.#joined.get(server) ?? 0),
    )
    return Math.max(0, ...open.map((charge) => this.#giveBack(charge, key, nowMs)))
  }

  /** Does the same to each rule at each server of a key. */
  each<T>(key: string, nowMs: number, act: (model: ModelRule) => T): T[] {
    return this.serversOf(key, nowMs).flatMap((server) => this.#modelsOf(server, key).map(act))
  }

  #ask(server: string, key: string, cost: number, nowMs: number, charges: boolean): Said {
    const models = this.#modelsOf(server, key)
    const decided = models.map((model) => model.decide(cost, nowMs))
    const allowed = decided.every((each) => each.allowed)
    const marks = allowed && charges && cost > 0 ? models.map((model) => model.charge(cost, nowMs)!) : []
    const figures = decided.map((each, i) => ({ ...each, ...models[i]!.figures(nowMs) }))
    return { server, allowed, figures, marks }
  }

  #giveBack({ server, marks }: Pick<Charge, 'server' | 'marks'>, key: string, nowMs: number): number {
    const models = this.#modelsOf(server, key)
    return Math.max(0, ...marks.map((mark, i) => models[i]!.giveBack(mark, nowMs)))
  }

  #modelsOf(server: string, key: string): ModelRule[] {
    const name = `${server} ${key}`
    let models = this.#models.get(name)
    if (models === undefined) {
      models = this.#rules.map((rule) => new ModelRule(rule))
      this.#models.set(name, models)
    }
    return models
  }

  #known(): Set<string> {
    return new Set([...this.#past.flatMap(({ servers }) => servers), ...this.#present])
  }

  #forget(nowMs: number): void {
    this.#past = this.#past.filter(({ untilMs }) => nowMs < untilMs)
  }
}

/** All servers must admit; each rule has the least left and the longest times. */
function mergedOf(said: readonly Said[]): Expected {
  const rules = said[0]!.figures.map((_, i) => {
    const each = said.map(({ figures }) => figures[i]!)
    return {
      allowed: each.every(({ allowed }) => allowed),
      remaining: Math.min(...each.map(({ remaining }) => remaining)),
      retryAfterMs: Math.max(...each.map(({ retryAfterMs }) => retryAfterMs)),
      resetMs: Math.max(...each.map(({ resetMs }) => resetMs)),
    }
  })
  return { allowed: said.every(({ allowed }) => allowed), rules }
}
