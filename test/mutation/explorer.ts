import { Worker } from 'node:worker_threads'
import { scenarios } from '../explore/scenarios/index.js'
import type { Mutation } from './mutations.js'
import { type Answer, type Request, SMOKE } from './request.js'

export interface Verdict {
  readonly by: 'load' | 'explorer' | 'test' | 'hang'
  /** The scenario, or whatever else it was that noticed. */
  readonly part: string
  readonly what: string
}

export interface ExplorerOptions {
  readonly walks: number
  readonly seed: number
  /** How many explorers share this process and its processor time. */
  readonly jobs: number
}

/** Seconds of processor time for each part, ten times what it takes when nothing is wrong: who needs more hangs. */
const MOST_SECONDS = { smoke: 2, scenario: 3 }
const AT_A_GLANCE = 12
const LOOK_EVERY_MS = 250
/** Copies of the code stay loaded for as long as their thread lives. */
const REQUESTS_PER_THREAD = 40

/** Lets a thread play one mutation after another, and ends it where it does not come back. */
export class Explorer {
  readonly #options: ExplorerOptions
  /** How often each scenario has been the one to notice. */
  readonly #noticed = new Map<string, number>(
    Object.entries(scenarios).map(([name, { deaths }]) => [name, deaths ? -1 : 0]),
  )
  #thread: Worker | undefined
  #requests = 0

  constructor(options: ExplorerOptions) {
    this.#options = options
  }

  /** What a scenario says of the shipped code it would say of any mutation: such a one is not asked, and `tell` is told. */
  static async create(
    options: ExplorerOptions,
    shipped: Mutation,
    tell: (what: string) => void,
  ): Promise<Explorer> {
    const explorer = new Explorer(options)
    for (;;) {
      const verdict = await explorer.judge(shipped)
      if (verdict === undefined) return explorer
      if (!explorer.#noticed.delete(verdict.part)) throw new Error(`the shipped code: ${verdict.what}`)
      tell(`NOT ASKED: ${verdict.what}, in the shipped code`)
    }
  }

  /** The smoke, and the few scenarios that have noticed most. */
  async glance(mutation: Mutation): Promise<Verdict | undefined> {
    return this.#judge(mutation, this.#ordered().slice(0, AT_A_GLANCE), 0)
  }

  /** All scenarios, and random schedules. */
  async judge(mutation: Mutation): Promise<Verdict | undefined> {
    return this.#judge(mutation, this.#ordered(), this.#options.walks)
  }

  #ordered(): string[] {
    return [...this.#noticed].sort(([, a], [, b]) => b - a).map(([name]) => name)
  }

  async #judge(mutation: Mutation, names: readonly string[], walks: number): Promise<Verdict | undefined> {
    if (++this.#requests % REQUESTS_PER_THREAD === 0) await this.close()
    this.#thread ??= new Worker(new URL('./explorer-worker.js', import.meta.url))
    const { file, original } = mutation
    const request: Request = {
      file,
      original,
      code: mutation.code(),
      scenarios: names,
      walks,
      seed: this.#options.seed,
    }
    const verdict = await this.#ask(this.#thread, request)
    const times = this.#noticed.get(verdict?.part ?? '')
    if (times !== undefined) this.#noticed.set(verdict!.part, times + 1)
    return verdict
  }

  async close(): Promise<void> {
    await this.#thread?.terminate()
    this.#thread = undefined
  }

  #ask(thread: Worker, request: Request): Promise<Verdict | undefined> {
    return new Promise((resolve) => {
      let part = SMOKE
      let started = process.cpuUsage()
      const end = (verdict: Verdict | undefined) => {
        clearInterval(timer)
        thread.off('error', failed).off('message', answered)
        resolve(verdict)
      }
      const giveUp = (by: 'load' | 'hang', what: string) => {
        this.#thread = undefined
        void thread.terminate()
        end({ by, part, what: `${part}: ${what}` })
      }
      const timer = setInterval(() => {
        const { user, system } = process.cpuUsage(started)
        const most = part === SMOKE ? MOST_SECONDS.smoke : MOST_SECONDS.scenario
        if ((user + system) / 1e6 > most * this.#options.jobs) giveUp('hang', `more than ${most} s`)
      }, LOOK_EVERY_MS)
      const failed = (error: Error) => giveUp('load', String(error))
      const answered = (answer: Answer) => {
        if (answer.kind === 'at') {
          part = answer.part
          started = process.cpuUsage()
        } else if (answer.noticed === undefined) end(undefined)
        else {
          const { what } = answer.noticed
          const by = part === SMOKE ? 'load' : what.startsWith('hang') ? 'hang' : 'explorer'
          end({ by, part, what: `${part}: ${what}` })
        }
      }
      thread.on('error', failed).on('message', answered)
      thread.postMessage(request)
    })
  }
}
