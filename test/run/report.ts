import { failedIn, namesOf, type Outcome } from './outcome.js'
import type { Run } from './plan.js'

/** Quick runs that take more processor time are listed at the end. */
const SLOW_SECONDS = 10
const BAR_CELLS = 30
const ERASE_LINE = '\r\x1b[2K'

const sideOf = ({ side }: Run) => (side === 'addon' ? ' (addon)' : '')
const titleOf = (run: Run) => `${namesOf(run)}${sideOf(run)}`

/** Reports the progress of a run: as a bar in a terminal, else as one line per file. */
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

  ended({ run, passed, failed, skipped, problems, notes, ended }: Outcome): void {
    this.#running.delete(run)
    this.#done++
    if (failed > 0) this.#failed++
    const [result, skips] = [failed > 0 ? 'FAIL' : 'ok  ', skipped > 0 ? `, ${skipped} skipped` : '']
    const cpu = ended.cpuSeconds === undefined ? '' : `, processor ${ended.cpuSeconds.toFixed(1)} s`
    const counts = `${passed} of ${passed + failed}${skips}, ${ended.seconds.toFixed(1)} s${cpu}`
    if (failed > 0 || !this.#stream.isTTY) this.note(`${result} ${titleOf(run)} (${counts})`)
    for (const problem of problems) this.note(`     ${namesOf(run)} ${problem}`)
    for (const note of notes) this.note(`     ${namesOf(run)} ${note}`)
    if (failed > 0) this.note(ended.output.trimEnd())
    this.#draw()
  }

  /** Prints a line above the bar. */
  note(line: string): void {
    this.#clear()
    this.#stream.write(`${line}\n`)
  }

  /** Lists the files that failed. */
  listFailed(outcomes: readonly Outcome[]): void {
    const failed = outcomes
      .filter((outcome) => outcome.failed > 0)
      .flatMap((outcome) => failedIn(outcome).map((name) => `${name}${sideOf(outcome.run)}`))
    if (failed.length > 0) this.note(`failed: ${failed.sort().join(', ')}`)
  }

  /** Lists the slow files. */
  listSlow(outcomes: readonly Outcome[]): void {
    const slow = outcomes
      .map(({ run, ended }) => ({ run, seconds: ended.cpuSeconds ?? 0 }))
      .filter(({ seconds }) => seconds > SLOW_SECONDS)
      .sort((a, b) => b.seconds - a.seconds)
    if (slow.length === 0) return
    this.note(`runs that took more than ${SLOW_SECONDS} s of processor time:`)
    for (const { run, seconds } of slow) this.note(`  ${seconds.toFixed(1).padStart(6)} s  ${titleOf(run)}`)
  }

  /** Prints the processor time of all files and of their processes. */
  noteProcessorTime(outcomes: readonly Outcome[]): void {
    const seconds = outcomes.reduce((sum, { ended }) => sum + (ended.cpuSeconds ?? 0), 0)
    this.note(`processor time of ${outcomes.length} runs: ${seconds.toFixed(0)} s`)
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
