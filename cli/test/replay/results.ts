import type { Replay } from 'millrace-cli/dist/replay/replay.js'
import { type Results, report } from 'millrace-cli/dist/replay/report.js'

/** The results of a small log. */
export const RESULTS: Replay = {
  requests: 401,
  clients: 36,
  refused: 112,
  refusedClients: 2,
  exactRefused: 109,
  wronglyAdmitted: 0,
  wronglyRefused: 6,
  refusedTooEarly: 0,
  rules: [
    {
      ...{ name: 'default', algorithm: 'sliding-window', limit: 10, windowMs: 60_000, granularityMs: 1_000 },
      ...{ refused: 112, refusedAlone: 112, refusedClients: 2 },
    },
  ],
  edge: 'strict',
  admissions: { refused: 112, mostInWindow: [10], clientsOver: 0 },
  firstMs: Date.UTC(2026, 2, 9, 14, 0, 10),
  lastMs: Date.UTC(2026, 2, 9, 14, 10, 9),
  refusedMost: [
    { client: '198.51.100.23', requests: 1_104, refused: 64, refusedBy: [64], peaks: [26] },
    { client: '2001:db8:5::c0de', requests: 55, refused: 48, refusedBy: [48], peaks: [11] },
  ],
  admitted: new Uint8Array(),
}
/** Of the log, for a report without a line about its format. */
export const LOG = { format: null, formatGuessed: true, withoutRequest: 0 }
export const NONE = { count: 0, examples: [] }

export const reported = (
  replay: Replay,
  unparsed: Results['unparsed'],
  top: number,
  width: number,
  more: Partial<Results> = {},
) => report({ ...LOG, replay, unparsed, key: 'ip', usersMissing: 0, ...more }, { top, width, colour: false })
export const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length))
