import type { LimiterRule, RuleChange, UsageOptions, WaitOptions } from '../api/call-options.js'
import {
  checkRuleName,
  checkUpdate,
  checkUsageRule,
  checkWaitOptions,
  closedError,
  neverAdmittedError,
  type RuleNames,
  rulesWithin,
  usageMs,
} from '../api/checks.js'
import { type Clock, readingOf } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { ofRate } from '../core/rule-options.js'
import { WordWatch } from '../core/word-watch.js'
import type { CallLimit } from '../engines/engine.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import { type FilePlace, type SharedLimiter, shareOf } from '../engines/share.js'
import { WaitQueues } from '../engines/waits/wait-queues.js'
import { changeLimitOf, changeWindowOf, type RuleMemory } from '../memory/arenas.js'
import { KeyReader } from '../memory/key-reader.js'
import type { Key, KeyHandle, PackedKeys } from '../memory/keys.js'
import { HEADER } from '../memory/layout.js'
import type { MemberParts } from './group-member.js'
import { presentOptions, presentShape, ruleNamesOf, ruleOf, shownRules } from './shown-rules.js'

/** The file with the counts of a limiter. */
export interface LimiterFile {
  readonly place: FilePlace
  /** Unmaps the file. Nothing may access the limiter's memory afterwards. */
  release(): void
}

/** The parts of a limiter that its methods use, whichever engine decides. */
interface LimiterParts {
  readonly memory: RuleMemory
  readonly rules: RuleNames
  /** One for each rule. */
  readonly engines: readonly RuleEngine[]
  readonly clock: Clock
  readonly keys: KeyReader
  /** Watches the word that `update` and `clearAll` change. */
  readonly updates: WordWatch
  readonly waiters: WaitQueues
  readonly file: LimiterFile | undefined
}

/** The part of a limiter that decides nothing: its rules and keys, and the pending calls of `wait`. */
export abstract class BaseLimiter {
  /** Private, so that a limiter in an object that is logged as JSON does not print its memory. */
  readonly #parts: LimiterParts

  /** @internal */
  constructor(memory: RuleMemory, engines: readonly RuleEngine[], clock: Clock, file?: LimiterFile) {
    const [first] = memory.arenas
    const updates = new WordWatch(first.words, HEADER.UPDATES)
    this.#parts = {
      memory,
      rules: ruleNamesOf(memory),
      engines,
      clock,
      keys: new KeyReader(this, first),
      updates,
      waiters: new WaitQueues(clock, updates),
      file,
    }
  }

  /** The name of the limiter's interface. @internal */
  protected abstract readonly kind: string
  /** @internal */
  protected abstract readonly isOpen: boolean
  /** Whether the memory is unmapped. @internal */
  protected abstract readonly isReleased: boolean

  /** Decides for `wait`: a refusal is never charged. @internal */
  protected abstract attempt(
    lo: number,
    hi: number,
    cost: number,
    limit: CallLimit | undefined,
  ): Decision | Promise<Decision>

  abstract close(): Promise<void>

  /** @internal */
  protected get parts(): LimiterParts {
    return this.#parts
  }

  /** The clock of the decisions. @internal */
  get clock(): Clock {
    return this.#parts.clock
  }

  get rule(): LimiterRule {
    return this.rules[0]!
  }

  get rules(): readonly LimiterRule[] {
    this.checkOpen()
    const { engines, memory } = this.#parts
    return engines.map((engine, i) => ruleOf(memory.names[i]!, engine))
  }

  pack(keys: readonly Key[]): PackedKeys {
    this.checkOpen()
    return this.#parts.keys.pack(keys)
  }

  handle(key: string): KeyHandle {
    this.checkOpen()
    return this.#parts.keys.handle(key)
  }

  share(): SharedLimiter {
    this.checkOpen()
    const { memory, clock, file } = this.#parts
    return shareOf(memory, clock, file?.place)
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.isOpen ? shownRules(this.rules) : { isClosed: true }
    return inspectAs(this.kind, fields, options, inspect)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** @throws MillraceError `ERR_MILLRACE_CLOSED` @internal */
  protected checkOpen(): void {
    if (!this.isOpen) throw closedError()
  }

  /** Starts a `wait()` call. An aborted call gives its admission back by `giveBack`. @internal */
  protected waitFor(
    key: Key,
    options: WaitOptions,
    giveBack?: (decision: Decision) => void,
  ): Promise<Decision> {
    this.checkOpen()
    const { keys, rules, waiters } = this.#parts
    const { cost, limit, signal } = checkWaitOptions(options, rules)
    const { lo, hi } = keys.read(key)
    this.checkOpen() // once more: a getter may have closed the limiter
    const request = {
      lo,
      hi,
      decide: () => this.attempt(lo, hi, cost, limit),
      neverError: () => neverAdmittedError(cost, rulesWithin(this.rules, limit)),
    }
    return waiters.wait(giveBack === undefined ? request : { ...request, giveBack }, signal)
  }

  /** Checks the arguments of a `usage()` call, and returns them with the index of the rule. @internal */
  protected usageRequest(
    key: Key,
    lastMs: Duration | undefined,
    options: UsageOptions,
  ): { rule: number; lo: number; hi: number; ms: number } {
    this.checkOpen()
    const { engines, memory, keys } = this.#parts
    const rule = checkUsageRule(options, memory.names)
    const { windowMs } = presentShape(engines[rule]!)
    const ms = usageMs(lastMs, windowMs, ofRate(engines[rule]!.arena, windowMs))
    const { lo, hi } = keys.read(key)
    this.checkOpen() // once more: a getter may have closed the limiter
    return { rule, lo, hi, ms }
  }

  /** @internal */
  protected changeRule(rule: string, change: RuleChange): void {
    this.checkOpen()
    const { clock, engines, memory, updates } = this.#parts
    const index = checkRuleName(rule, memory.names)
    const own = checkUpdate(change, presentOptions(engines[index]!))
    const nowMs = own.window === undefined ? 0 : readingOf(clock)
    this.checkOpen() // once more: a getter or a clock may have closed the limiter
    if (own.window === undefined) changeLimitOf(memory.arenas, index, own.limit!)
    else changeWindowOf(memory.arenas, index, own.window, own.limit, nowMs)
    updates.check()
  }

  /**
   * The parts of this limiter that a group uses. Each decision of a group calls `isOpen`: the subclass reads
   * its own field there. @internal
   */
  protected memberParts(name: string, isOpen: () => boolean): MemberParts {
    if (!this.isOpen) throw closedError(`members.${name}`)
    const { memory, engines, keys, waiters } = this.#parts
    return { name, memory, engines, keys, waiters, isOpen, isReleased: () => this.isReleased }
  }
}
