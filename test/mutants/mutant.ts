import type { Edit } from '../explore/copy.js'

/** A deliberate mistake, as edits of the built code, and the scenario or the test file that must catch it. */
export type Mutant = { readonly edits: readonly Edit[] } & (
  | { readonly scenario: string }
  | { readonly test: string } // below `build/test`
)

const WINDOW = 'algorithms/sliding-window.js'

/** Each makes an edit of one file. */
export const inWindow = editIn(WINDOW)
export const inSummed = editIn('algorithms/summed-cells.js')
export const inSummedAdjustments = editIn('algorithms/summed-adjustments.js')
export const inLog = editIn('algorithms/sliding-log.js')
export const inLogEntries = editIn('algorithms/log-entries.js')
export const inLogAdjustments = editIn('algorithms/log-adjustments.js')
export const inCharges = editIn('algorithms/charges.js')
export const inRing = editIn('algorithms/ring.js')
export const inCells = editIn('algorithms/keyed-cells.js')
export const inWords = editIn('algorithms/word-cells.js')
export const inWordAdjustments = editIn('algorithms/word-adjustments.js')
export const inFixedWindow = editIn('algorithms/fixed-window.js')
export const inBucket = editIn('algorithms/token-bucket.js')
export const inCellTime = editIn('algorithms/cell-time.js')
export const inCellSize = editIn('core/cell-size.js')
export const inBlocking = editIn('algorithms/blocking.js')
export const inPlain = editIn('range-sum/linear.js')
export const inNodes = editIn('range-sum/nodes.js')
export const inAdjustments = editIn('algorithms/adjustments.js')
export const inBlockBound = editIn('algorithms/block-bound.js')
export const inConversion = editIn('algorithms/conversion.js')
export const inRefundMarks = editIn('algorithms/refund-marks.js')
export const inInsertion = editIn('memory/insertion.js')
export const inTable = editIn('memory/table.js')
export const inRecords = editIn('memory/records.js')
export const inEstimates = editIn('engines/decision-estimates.js')
export const inEngine = editIn('engines/inline.js')
export const inViews = editIn('engines/views.js')
export const inTally = editIn('engines/tally.js')
export const inKeyChanges = editIn('engines/key-changes.js')
export const inRulesEngine = editIn('engines/rules-engine.js')
export const inAttempt = editIn('engines/rule-attempt.js')
export const inRulesDecision = editIn('core/inline-rules-decision.js')
export const inRulesChanges = editIn('engines/rules-changes.js')
export const inGroup = editIn('inline-group.js')
export const inGroupBase = editIn('base-group.js')
export const inGroupMember = editIn('group-member.js')
export const inLimiter = editIn('inline-limiter.js')
export const inReservation = editIn('reservation.js')
export const inWaitQueue = editIn('engines/wait-queue.js')
export const inWaitQueues = editIn('engines/wait-queues.js')
export const inWordWatch = editIn('core/word-watch.js')
export const inGroups = {
  base: editIn('base-group.js'),
  inline: editIn('inline-group.js'),
  async: editIn('async-group.js'),
  member: editIn('group-member.js'),
  queues: editIn('engines/group-queues.js'),
}

/** Makes every decision skip the attempt. For mistakes in `decide` that the attempt would hide. */
export const withoutAttempt: Edit = {
  file: WINDOW,
  find: 'const e = reading.tick;\n',
  replace: 'const e = reading.tick;\n        if (cost > 0) return UNDECIDED;\n',
}

function editIn(file: string): (find: string, replace: string) => Edit {
  return (find, replace) => ({ file, find, replace })
}
