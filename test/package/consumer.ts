// The code of a user of the package. The tests compile it in a separate project with every module resolution
// of TypeScript. It also runs, and fails if a limiter does not decide.
import {
  attachLimiter,
  type BatchDecision,
  type Clock,
  type Costs,
  createLimiter,
  type Decision,
  type DecisionFields,
  type Duration,
  type Edge,
  type ErrorCode,
  type Key,
  type KeyHandle,
  type Limiter,
  type LimiterOptions,
  type LimiterStats,
  type ManualClock,
  MillraceError,
  manualClock,
  type OnFull,
  type PackedKeys,
  type RuleOptions,
  type SharedLimiter,
} from 'millrace'

const clock: ManualClock = manualClock(1_000)
const asClock: Clock = clock
const window: Duration = '1m'
const edge: Edge = 'strict'
const onFull: OnFull = 'deny'
const rule: RuleOptions = { limit: 3, window, edge }
const options: LimiterOptions = { ...rule, maxKeys: 100, onFull, clock: asClock }

const limiter: Limiter = createLimiter(options)
const shared: SharedLimiter = limiter.share()
const attached: Limiter = attachLimiter(shared)
const handle: KeyHandle = limiter.handle('somebody')
const key: Key = handle
const packed: PackedKeys = limiter.pack(['somebody', handle])
const costs: Costs = [1, 1]

const first: Decision = attached.check('somebody')
const both: BatchDecision = limiter.checkMany(packed, costs)
const over: DecisionFields = limiter.check(key).toJSON()
const admitted: boolean[] = [first.allowed, both.allowed[0] === 1, both.allowed[1] === 1, over.allowed]
const stats: LimiterStats = limiter.stats()
let code: ErrorCode | undefined
try {
  // @ts-expect-error a limit is a number: the compiler has found the types
  createLimiter({ limit: 'three', window: '1m' })
} catch (error) {
  if (error instanceof MillraceError) code = error.code
}
await limiter.close()

const found = JSON.stringify({ admitted, keys: stats.keys, code })
if (found !== '{"admitted":[true,true,true,false],"keys":1,"code":"ERR_MILLRACE_INVALID_RULE"}')
  throw new Error(found)
