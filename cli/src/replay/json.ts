import type { Compared } from './algorithms.js'
import type { RefusedClient } from './judge.js'
import { readable } from './keys.js'
import { isEarlyByGranularity, type Replay, type ReplayedRule } from './replay.js'

/** Figures beside those of the replay. */
interface Others {
  unparsed: number
  key: string
  withoutUser: number
  /** Lines without a request. */
  withoutRequest: number
  /** Null if the log is empty. */
  format: string | null
  formatGuessed: boolean
  /** The most clients to list. */
  top: number
  /** Present with `--compare`. */
  compared?: readonly Compared[]
}

/**
 * The output of `--json`. The figures of one rule stand beside the others; several rules have an entry each,
 * by their names.
 */
export function figuresOf(replay: Replay, { top, compared, ...others }: Others): object {
  const { refusedMost, admitted, admissions, rules, edge, firstMs, lastMs, refusedTooEarly, ...counts } =
    replay
  const hasEdge = rules.every(({ algorithm }) => algorithm === 'sliding-window')
  const topRefused = refusedMost.slice(0, top).map((client) => clientOf(client, rules))
  return {
    ...counts,
    ...(rules.every(isEarlyByGranularity) && { refusedTooEarly }),
    ...(rules.length === 1 ? shapeOf(rules[0]!) : { rules }),
    ...(hasEdge && { edge }),
    ...{ firstMs, lastMs },
    ...(compared !== undefined && comparedOf(compared, rules)),
    ...others,
    topRefused,
  }
}

function shapeOf({ algorithm, limit, windowMs, granularityMs, align, burst }: ReplayedRule): object {
  return { algorithm, limit, windowMs, granularityMs, align, burst } // JSON leaves out what is undefined
}

function clientOf(found: RefusedClient, rules: readonly ReplayedRule[]): object {
  const { requests, refused, refusedBy, peaks } = found
  const all = { client: readable(found.client), requests, refused }
  if (rules.length === 1) return { ...all, peak: peaks[0] }
  return { ...all, rules: rules.map(({ name }, i) => ({ name, refused: refusedBy[i], peak: peaks[i] })) }
}

/** An entry for each algorithm, and that of the fixed window once more by its name. */
function comparedOf(compared: readonly Compared[], rules: readonly ReplayedRule[]): object {
  const figures = compared.map((one) => ({ algorithm: one.algorithm, ...windowsOf(one, rules) }))
  const { algorithm, ...fixedWindow } = figures.find((one) => one.algorithm === 'fixed-window') ?? {}
  return { compared: figures, ...(algorithm !== undefined && { fixedWindow }) }
}

function windowsOf({ refused, mostInWindow, clientsOver }: Compared, rules: readonly ReplayedRule[]) {
  if (rules.length === 1) return { refused, mostInWindow: mostInWindow[0], clientsOver }
  const most = rules.map(({ name }, i) => ({ name, mostInWindow: mostInWindow[i] }))
  return { refused, clientsOver, rules: most }
}
