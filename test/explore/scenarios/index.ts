import { EXPLORED_ALGORITHMS, type Scenario } from '../scenario.js'
import { adjusting } from './adjusting.js'
import { blocking } from './blocking.js'
import { changing } from './changing.js'
import { deciding } from './deciding.js'
import { inserting } from './inserting.js'
import { several } from './several.js'
import { summing } from './summing.js'

const written: Readonly<Record<string, Scenario>> = {
  ...deciding,
  ...inserting,
  ...blocking,
  ...adjusting,
  ...summing,
  ...several,
  ...changing,
}

/** Each scenario with each algorithm. With the first one it keeps its name. */
const alive: Readonly<Record<string, Scenario>> = Object.fromEntries(
  EXPLORED_ALGORITHMS.flatMap((algorithm, i) =>
    Object.entries(written).map(([name, scenario]) => [
      i === 0 ? name : `${name}; ${algorithm}`,
      { ...scenario, algorithm },
    ]),
  ),
)

/** Each scenario, and each once more with a thread that may die at any of its steps. */
export const scenarios: Readonly<Record<string, Scenario>> = Object.fromEntries([
  ...Object.entries(alive),
  ...Object.entries(alive).map(([name, scenario]) => [`${name}; one dies`, withDeath(scenario)]),
])

/**
 * If a full table denies, a key may later need the very way that the dead thread left claimed. A thread that
 * dies inside a block may have lengthened the block of another key.
 */
function withDeath(scenario: Scenario): Scenario {
  const blocks = scenario.threads.flat().some((op) => op.do === 'block')
  return { ...scenario, deaths: true, ...(blocks || scenario.onFull === 'deny' ? { restKeys: [] } : {}) }
}
