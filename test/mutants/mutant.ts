import type { Edit } from '../explore/copy.js'

/** A deliberate mistake, as edits of the built code, and the scenario or the test file that must catch it. */
export type Mutant = { readonly edits: readonly Edit[] } & (
  | { readonly scenario: string }
  | { readonly test: string } // below `build/test`
)

const WINDOW = 'sliding-window'

/** Each makes an edit of one file. */
export const inWindow = editIn(WINDOW)
export const inSummed = editIn('summed-cells')
export const inSummedAdjustments = editIn('summed-adjustments')
export const inLog = editIn('sliding-log')
export const inLogEntries = editIn('log-entries')
export const inLogAdjustments = editIn('log-adjustments')
export const inCharges = editIn('charges')
export const inRing = editIn('ring')
export const inCells = editIn('keyed-cells')
export const inWords = editIn('word-cells')
export const inWordAdjustments = editIn('word-adjustments')
export const inFixedWindow = editIn('fixed-window')
export const inBucket = editIn('word/token-bucket')
export const inCellTime = editIn('cell-time')
export const inCellSize = editIn('cell-size')
export const inBlocking = editIn('blocking')
export const inPlain = editIn('linear')
export const inNodes = editIn('nodes')
export const inAdjustments = editIn('adjustments')
export const inBlockBound = editIn('block-bound')
export const inConversion = editIn('conversion')
export const inPast = editIn('algorithms/past')
export const inPolicyPlans = editIn('policy-plans')
export const inPolicyPlaces = editIn('policies/in-memory')
export const inRefundMarks = editIn('refund-marks')
export const inInsertion = editIn('insertion')
export const inTable = editIn('table')
export const inRecords = editIn('memory/records')
export const inEstimates = editIn('decision-estimates')
export const inEngine = editIn('inline')
export const inViews = editIn('views')
export const inTally = editIn('tally')
export const inKeyChanges = editIn('inline/key-changes')
export const inRulesEngine = editIn('rules-engine')
export const inAttempt = editIn('rule-attempt')
export const inRulesDecision = editIn('rules-decision')
export const inRulesChanges = editIn('rules-changes')
export const inGroup = editIn('inline-group')
export const inGroupBase = editIn('base-group')
export const inGroupMember = editIn('group-member')
export const inLimiter = editIn('inline-limiter')
export const inReservation = editIn('reservation')
export const inWaitQueue = editIn('wait-queue')
export const inWaitQueues = editIn('waits/wait-queues')
export const inWordWatch = editIn('word-watch')
export const inGroups = {
  base: editIn('base-group'),
  inline: editIn('inline-group'),
  async: editIn('async-group'),
  member: editIn('group-member'),
  queues: editIn('group-queues'),
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
