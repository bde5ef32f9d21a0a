import { createRequire } from 'node:module'
import type { LimiterRule, RuleChange } from '../api/call-options.js'
import { checkOpen, checkRuleName, checkUpdate, type RuleNames } from '../api/checks.js'
import { publishPolicy } from '../core/channels.js'
import { type Clock, readingOf } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { lazily } from '../core/lazily.js'
import type { Signal } from '../core/on-abort.js'
import { WordWatch } from '../core/word-watch.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import type { FilePlace, SharedLimiter } from '../engines/share.js'
import type { WaitRequest } from '../engines/waits/wait-queue.js'
import type { WaitQueues } from '../engines/waits/wait-queues.js'
import { changeLimitOf, changeWindowOf, type RuleMemory, seedsOf } from '../memory/arenas.js'
import { KeyReader } from '../memory/key-reader.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { HEADER } from '../memory/layout.js'
import type { Backend, Counted } from './base-limiter.js'
import { presentOptions, presentShape, ruleNamesOf, ruleOf } from './shown-rules.js'

const require = createRequire(import.meta.url)
const waitQueues = lazily(
  () => require('../engines/waits/wait-queues.js') as typeof import('../engines/waits/wait-queues.js'),
)
const sharing = lazily(() => require('../engines/share.js') as typeof import('../engines/share.js'))

/** The file with the counts of a limiter. */
export interface LimiterFile {
  readonly place: FilePlace
  /** Unmaps the file. Nothing may access the limiter's memory afterwards. */
  release(): void
}

/** A key as the memory knows it. */
export interface Fingerprint {
  readonly lo: number
  readonly hi: number
}

/** Counts in shared memory, whichever engine decides. */
export class MemoryBackend implements Backend<Fingerprint> {
  readonly kind: string
  isOpen = true
  /** Whether the memory is unmapped. */
  isReleased = false
  readonly keys: KeyReader
  /** The same for all threads and processes on the memory. */
  readonly id: string
  readonly memory: RuleMemory
  readonly clock: Clock
  /** One for each rule. */
  readonly engines: readonly RuleEngine[]
  // What most limiters never use is made at its first use.
  #names: RuleNames | undefined
  #updates: WordWatch | undefined
  #waiters: WaitQueues | undefined
  readonly #file: LimiterFile | undefined

  constructor(
    owner: object,
    kind: string,
    memory: RuleMemory,
    engines: readonly RuleEngine[],
    clock: Clock,
    file?: LimiterFile,
  ) {
    const [first] = memory.arenas
    this.kind = kind
    this.keys = new KeyReader(owner, first)
    this.id = seedsOf(first).join()
    this.memory = memory
    this.engines = engines
    this.clock = clock
    this.#file = file
  }

  get names(): RuleNames {
    this.#names ??= ruleNamesOf(this.memory)
    return this.#names
  }

  /** Watches the word that `update` and `clearAll` change. */
  get updates(): WordWatch {
    this.#updates ??= new WordWatch(this.memory.arenas[0].words, HEADER.UPDATES)
    return this.#updates
  }

  get waiters(): WaitQueues {
    this.#waiters ??= new (waitQueues().WaitQueues)(this.clock, this.updates)
    return this.#waiters
  }

  get nearLimit(): number | undefined {
    return this.memory.nearLimit
  }

  get rules(): readonly LimiterRule[] {
    return this.engines.map((engine, i) => ruleOf(this.memory.names[i]!, engine))
  }

  counted(rule: number): Counted {
    const engine = this.engines[rule]!
    return { windowMs: presentShape(engine).windowMs, rate: engine.arena.rate }
  }

  pack(keys: readonly Key[] | PackedKeys): PackedKeys {
    return this.keys.pack(keys)
  }

  share(): SharedLimiter {
    return sharing().shareOf(this.memory, this.clock, this.#file?.place)
  }

  wait({ lo, hi }: Fingerprint, request: WaitRequest, signal: Signal | undefined): Promise<Decision> {
    return this.waiters.wait({ ...request, lo, hi }, signal)
  }

  update(rule: string, change: RuleChange): void {
    const { engines, memory } = this
    const index = checkRuleName(rule, memory.names)
    const own = checkUpdate(change, presentOptions(engines[index]!))
    const nowMs = own.window === undefined ? 0 : readingOf(this.clock)
    checkOpen(this) // once more: a getter or a clock may have closed the limiter
    if (own.window === undefined) changeLimitOf(memory.arenas, index, own.limit!)
    else changeWindowOf(memory.arenas, index, own.window, own.limit, nowMs)
    this.updates.check()
    publishPolicy(rule, undefined, own.limit === undefined ? undefined : this.rules[index]!.limit)
  }

  /** Wakes all pending calls of `wait`: the counts of all keys have changed. */
  changedAll(): void {
    this.updates.check()
  }

  /** Unmaps the file, if there is one. */
  release(): void {
    this.isReleased = this.#file !== undefined
    this.#file?.release()
  }
}
