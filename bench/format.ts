/** How figures and verdicts are written, on a terminal and on a page alike. */
import type { Machine } from './machine.js'
import type { Summary } from './statistics.js'
import type { Verdict } from './verdict.js'

/** Three digits that count: what is beyond them is noise. */
export function number(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits).replace(/^-(0\.00)$/, '$1')
}

export function spread({ min, max }: Summary): string {
  return `${number(min)} to ${number(max)}`
}

/** What a verdict is held to; empty where it is held to nothing. */
export function bound({ atMost, atLeast, stretch, unit }: Verdict): string {
  if (atMost === undefined && atLeast === undefined) return ''
  const side = atMost === undefined ? `>= ${atLeast} ${unit}` : `<= ${atMost} ${unit}`
  return stretch === undefined ? side : `${side}, better ${stretch}`
}

export function outcome({ met, missedBy }: Verdict): string {
  if (met === undefined) return ''
  return met ? 'met' : `missed by ${Math.ceil(missedBy! * 100)} %`
}

/** Of an ISO 8601 time. */
export function day(date: string): string {
  return date.slice(0, 'YYYY-MM-DD'.length)
}

export function machineLine({ cpu, cores, node, date, commit, addon }: Machine): string {
  return `${cpu}, ${cores} cores, Node ${node}, ${addon ? 'with' : 'without'} the addon, ${date}, commit ${commit}`
}
