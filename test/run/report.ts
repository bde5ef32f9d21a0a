import type { Outcome } from './outcome.js'
import type { Run } from './plan.js'

/** A quick file that takes more processor time is named at the end. */
const SLOW_SECONDS = 10
const BAR_CELLS = 30
const ERASE_LINE = '\r\x1b[2K'

const titleOf = ({ file, side }: Run) => `${file.name}${side === 'addon' ? ' with the addon' : ''}`

/** Tells how a run of many test files goes: by a bar in a terminal, elsewhere by a line a file. */
export class Report {
  readonly #stream: NodeJS.WriteStream
  readonly #total: number
  readonly #running = new Set<Run>()
  #done = 0
  #failed = 0

  constructor(stream: NodeJS.WriteStream, total: number) {
    this.#stream = stream
    this.#total = total
  }

  started(run: Run): void {
    this.#running.add(run)
    this.#draw()
  }

  ended({ run, passed, failed, skipped, complaints, ended }: Outcome): void {
    this.#running.delete(run)
    this.#done++
    if (failed > 0) this.#failed++
    const [verdict, some] = [failed > 0 ? 'FAIL' : 'ok  ', skipped > 0 ? `, ${skipped} skipped` : '']
    const counts = `${passed} of ${passed + failed}${some}, ${ended.seconds.toFixed(1)} s`
    if (failed > 0 || !this.#stream.isTTY) this.note(`${verdict} ${titleOf(run)} (${counts})`)
    for (const complaint of complaints) this.note(`     ${run.file.name} ${complaint}`)
    if (failed > 0) this.note(ended.output.trimEnd())
    this.#draw()
  }

  /** A line that stays. */
  note(line: string): void {
    this.#clear()
    this.#stream.write(`${line}\n`)
  }

  /** Names the files that take long. */
  slow(outcomes: readonly Outcome[]): void {
    const slow = outcomes
      .map(({ run, ended }) => ({ run, seconds: ended.cpuSeconds ?? 0 }))
      .filter(({ seconds }) => seconds > SLOW_SECONDS)
      .sort((a, b) => b.seconds - a.seconds)
    if (slow.length === 0) return
    this.note(`more than ${SLOW_SECONDS} s of processor time:`)
    for (const { run, seconds } of slow) this.note(`  ${seconds.toFixed(1).padStart(6)} s  ${titleOf(run)}`)
  }

  #draw(): void {
    if (!this.#stream.isTTY || this.#done === this.#total) return
    const filled = Math.floor((BAR_CELLS * this.#done) / this.#total)
    const bar = '█'.repeat(filled) + '░'.repeat(BAR_CELLS - filled)
    const failed = this.#failed > 0 ? `, ${this.#failed} failed` : ''
    const names = [...this.#running].map(titleOf).join(', ')
    const line = `${bar} ${this.#done} of ${this.#total}${failed}: ${names}`
    this.#clear()
    this.#stream.write(line.slice(0, (this.#stream.columns ?? 80) - 1))
  }

  #clear(): void {
    if (this.#stream.isTTY) this.#stream.write(ERASE_LINE)
  }
}
