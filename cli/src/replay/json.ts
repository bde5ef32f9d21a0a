import type { FixedWindow } from './fixed-window.js'
import type { RefusedClient } from './judge.js'
import { readable } from './keys.js'
import type { Replay, ReplayedRule } from './replay.js'

/** Figures beside those of the replay. */
interface Others {
  unparsed: number
  key: string
  withoutUser: number
  /** The most clients to list. */
  top: number
  fixedWindow?: FixedWindow
}

/**
 * The output of `--json`. The figures of one rule stand beside the others; several rules have an entry each,
 * by their names.
 */
export function figuresOf(replay: Replay, { top, fixedWindow, ...others }: Others): object {
  const { refusedMost, admitted, rules, edge, firstMs, lastMs, ...counts } = replay
  const topRefused = refusedMost.slice(0, top).map((client) => clientOf(client, rules))
  return {
    ...counts,
    ...(rules.length === 1 ? shapeOf(rules[0]!) : { rules }),
    ...{ edge, firstMs, lastMs },
    ...(fixedWindow === undefined ? {} : { fixedWindow: fixedWindowOf(fixedWindow, rules) }),
    ...others,
    topRefused,
  }
}

function shapeOf({ limit, windowMs, granularityMs }: ReplayedRule): object {
  return { limit, windowMs, granularityMs }
}

function clientOf(found: RefusedClient, rules: readonly ReplayedRule[]): object {
  const { requests, refused, refusedBy, peaks } = found
  const all = { client: readable(found.client), requests, refused }
  if (rules.length === 1) return { ...all, peak: peaks[0] }
  return { ...all, rules: rules.map(({ name }, i) => ({ name, refused: refusedBy[i], peak: peaks[i] })) }
}

function fixedWindowOf({ refused, mostInWindow, clientsOver }: FixedWindow, rules: readonly ReplayedRule[]) {
  if (rules.length === 1) return { refused, mostInWindow: mostInWindow[0], clientsOver }
  const most = rules.map(({ name }, i) => ({ name, mostInWindow: mostInWindow[i] }))
  return { refused, clientsOver, rules: most }
}
