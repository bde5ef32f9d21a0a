import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { lmdbConfig, type StoredPolicy, type SyncConfigStore } from 'millrace/config/lmdb'
import { random } from '../../algorithms/random.js'
import { inCommas, type Progress } from '../../long-runs/progress.js'
import { poll } from '../../redis/poll.js'
import { type Job, policyOf, WRITERS } from './job.js'
import { Judge } from './judge.js'

const WRITER = fileURLToPath(new URL('./writer.js', import.meta.url))
/** The longest time from a writer's first acknowledged write to its death. */
const LONGEST_LIFE_MS = 60
/** After so many deaths of one writer all die, and the file is opened anew. */
const DEATHS_A_WAVE = 9

export interface Findings {
  kills: number
  /** The times that no process had the file open. */
  reopened: number
  acknowledged: number
  cutOff: number
  kept: number
  /** Keys that a watcher knows as the store has them, by the changes that it was told. */
  watched: number
  complaints: string[]
}

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
}

/** Kills processes that write to one LMDB file, each at a random moment, and compares the file with their logs. */
export class Run {
  readonly #kills: number
  readonly #next: () => number
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-kills-'))
  readonly #path = join(this.#folder, 'limits')
  readonly #judges: Judge[]
  readonly #running: Running[] = []
  readonly #complaints: string[] = []
  #store: SyncConfigStore
  #killed = 0
  #started: number

  constructor(kills: number, seed: number) {
    this.#kills = kills
    this.#next = random(seed)
    this.#started = 1_000 * seed
    this.#judges = Array.from({ length: WRITERS }, (_, writer) => new Judge(writer, this.#logOf(writer)))
    this.#store = lmdbConfig({ path: this.#path })
  }

  #logOf(writer: number): string {
    return join(this.#folder, `log-${writer}`)
  }

  async run(progress: Progress): Promise<Findings> {
    let reopened = 0
    let watched = 0
    const known = new Map<string, StoredPolicy>()
    try {
      this.#watch(known)
      for (const [writer] of this.#judges.entries()) await this.#start(writer)
      while (this.#killed < this.#kills && this.#found.length === 0) {
        const writer = Math.floor(this.#next() * WRITERS)
        await pause(this.#next() ** 2 * LONGEST_LIFE_MS)
        await this.#kill(writer)
        if (this.#killed % (DEATHS_A_WAVE + 1) === DEATHS_A_WAVE && this.#killed < this.#kills) {
          await this.#killOthers(writer)
          await this.#store.close()
          this.#store = lmdbConfig({ path: this.#path })
          await this.#check(this.#judges)
          this.#watch(known)
          reopened++
          for (const [each] of this.#judges.entries()) await this.#start(each)
        } else await this.#start(writer)
        progress.at(`${this.#killed} kills, ${inCommas(this.#sum('acknowledged'))} acknowledged writes`)
      }
      await this.#end()
      watched = await this.#compareWatched(known)
    } finally {
      for (const { child } of this.#running) child.kill('SIGKILL')
      await Promise.all(this.#running.map(({ ended }) => ended))
      await this.#store.close()
      rmSync(this.#folder, { recursive: true, force: true })
    }
    return {
      kills: this.#killed,
      reopened,
      acknowledged: this.#sum('acknowledged'),
      cutOff: this.#sum('cutOff'),
      kept: this.#sum('kept'),
      watched,
      complaints: this.#found,
    }
  }

  get #found(): string[] {
    return [...this.#complaints, ...this.#judges.flatMap(({ complaints }) => complaints)]
  }

  #sum(figure: 'acknowledged' | 'cutOff' | 'kept'): number {
    return this.#judges.reduce((sum, judge) => sum + judge[figure], 0)
  }

  /** Starts a writer, and waits for its first acknowledged write. */
  async #start(writer: number): Promise<void> {
    const log = this.#logOf(writer)
    writeFileSync(log, '')
    const { last } = this.#judges[writer]!
    const job: Job = { path: this.#path, log, writer, after: last, seed: ++this.#started }
    const child = fork(WRITER, [JSON.stringify(job)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let complaint = ''
    child.stderr!.on('data', (chunk) => (complaint += chunk))
    const ended = once(child, 'exit').then(([code, signal]) => {
      if (signal !== 'SIGKILL') this.#complaints.push(`a writer ended with ${code ?? signal}: ${complaint}`)
    })
    this.#running[writer] = { child, ended }
    await Promise.race([once(child, 'message'), ended])
  }

  /** Kills a writer while the others go on, and compares what it has written. */
  async #kill(writer: number): Promise<void> {
    const { child, ended } = this.#running[writer]!
    child.kill('SIGKILL')
    await ended
    this.#killed++
    const judge = this.#judges[writer]!
    judge.readLog()
    await this.#check([judge])
  }

  /**
   * A writer that dies between its last page and its last word in the lock file leaves a write that readers see once
   * somebody else has written. So something is written first.
   */
  async #check(judges: readonly Judge[]): Promise<void> {
    await this.#store.put('judge', policyOf(1))
    const stored = await all(this.#store)
    for (const judge of judges) judge.check(stored)
  }

  async #killOthers(first: number): Promise<void> {
    for (const [writer] of this.#judges.entries()) if (writer !== first) await this.#kill(writer)
  }

  async #end(): Promise<void> {
    for (const { child } of this.#running) child.kill('SIGKILL')
    await Promise.all(this.#running.map(({ ended }) => ended))
    for (const judge of this.#judges) judge.readLog()
    await this.#check(this.#judges)
  }

  /** Keeps what the store has, read again only when a change is told. */
  #watch(known: Map<string, StoredPolicy>): void {
    const store = this.#store
    const read = (key: string) => {
      const found = store.findNow([key])
      if (found === undefined) known.delete(key)
      else known.set(key, found)
    }
    const readAll = async () => {
      known.clear()
      for (const each of await all(store)) known.set(each.key, each)
    }
    store.watch(({ keys, error }) => {
      if (error !== undefined) this.#complaints.push(error.message)
      else if (keys !== undefined) for (const key of keys) read(key)
      else void readAll()
    })
    void readAll()
  }

  async #compareWatched(known: Map<string, StoredPolicy>): Promise<number> {
    const stored = await all(this.#store)
    const isSame = () =>
      known.size === stored.length && stored.every((each) => isDeepStrictEqual(known.get(each.key), each))
    await poll(isSame, 'that the watcher knows all changes')
    return stored.length
  }
}

async function all(store: SyncConfigStore): Promise<StoredPolicy[]> {
  return (await store.list({ limit: 10_000 })) as StoredPolicy[]
}

export function summaryOf(found: Findings): string {
  const { kills, reopened, acknowledged, cutOff, kept, watched, complaints } = found
  const verdict =
    complaints.length === 0 ? 'every acknowledged write is there, every document whole' : 'WRONG'
  return (
    `${verdict}: ${inCommas(kills)} kills of ${WRITERS} writers on one LMDB file, ${inCommas(acknowledged)} ` +
    `acknowledged writes, ${inCommas(cutOff)} cut off (${inCommas(kept)} of them whole in the file, the others not at ` +
    `all), file opened anew ${inCommas(reopened)} times, ${inCommas(watched)} keys as the watcher knows them, ` +
    `${complaints.length} complaints`
  )
}
