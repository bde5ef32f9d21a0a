/** Formats figures and verdicts for terminals and for the page. */
import type { Machine } from './machine.js'
import type { Summary } from './statistics.js'
import type { Verdict } from './verdict.js'

/** Three significant digits; further digits are noise. */
export function number(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits).replace(/^-(0\.00)$/, '$1')
}

export function spread({ min, max }: Summary): string {
  return `${number(min)} to ${number(max)}`
}

/** The bound of a verdict, or an empty string if it has none. */
export function bound({ atMost, atLeast, stretch, unit }: Verdict): string {
  if (atMost === undefined && atLeast === undefined) return ''
  const side = atMost === undefined ? `>= ${atLeast} ${unit}` : `<= ${atMost} ${unit}`
  return stretch === undefined ? side : `${side} (stretch ${stretch})`
}

export function outcome({ met, missedBy, isTooNoisy }: Verdict): string {
  if (isTooNoisy) return 'too noisy to tell'
  if (met === undefined) return ''
  return met ? 'met' : `missed by ${Math.ceil(missedBy! * 100)} %`
}

/** The label of a verdict, with the build if it was judged on the one without the addon. */
export function judgedLabel({ label, build }: Verdict): string {
  return build === undefined ? label : `${label} (${build})`
}

/** A duration in seconds, or in minutes from two on. */
export function took(ms: number): string {
  return ms < 120_000 ? `${number(ms / 1_000)} seconds` : `${(ms / 60_000).toFixed(1)} minutes`
}

/** The date of an ISO 8601 time. */
export function day(date: string): string {
  return date.slice(0, 'YYYY-MM-DD'.length)
}

export function machineLine({ cpu, cores, node, date, commit, addon }: Machine): string {
  return `${cpu}, ${cores} cores, Node ${node}, ${addon ? 'with' : 'without'} the addon, ${date}, commit ${commit}`
}
