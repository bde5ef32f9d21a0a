// What the package millrace-cli needs beside the public interface. It names this version exactly, for any release may change it.
export { monotonicClock } from './core/clock.js'
export type { InlineDecision } from './core/decision.js'
export { formatDuration, parseDuration } from './core/duration.js'
export { checkRule } from './core/rule.js'
export { attachPool } from './create.js'
