import { InlineDecision } from './inline-decision.js'

/**
 * A decision without a limit. `Infinity` is no small integer: a class of its own keeps the fields of other decisions
 * small.
 */
export class UnlimitedDecision extends InlineDecision {}
