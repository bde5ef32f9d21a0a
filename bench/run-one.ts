/**
 * The child process: measures one contender and sends its figures to the parent. `rounds.ts` starts it with
 * the case, the contender and the effort as arguments.
 */
import type { Effort } from './benchmark.js'
import { ALL_CASES, type CaseName } from './cases/index.js'

const [caseName, contenderName, effort] = process.argv.slice(2)
process.once('disconnect', () => process.exit(1))

const benchmark = await ALL_CASES[caseName as CaseName]()
const contender = benchmark.contenders.find(({ name }) => name === contenderName)
if (!contender) throw new Error(`case '${caseName}' has no contender '${contenderName}'`)
const figures = await contender.measure(JSON.parse(effort!) as Effort)
// Exit at once: a peer's million timers would keep the process alive, and releasing its heap takes longer
// than measuring.
process.send!(figures, () => process.exit(0))
