import { adjusting } from './adjusting.js'
import { changing } from './changing.js'
import { deciding } from './deciding.js'
import { grouping } from './grouping.js'
import { inserting } from './inserting.js'
import { logging } from './logging.js'
import type { Mutant } from './mutant.js'
import { several } from './several.js'
import { summing } from './summing.js'
import { waiting } from './waiting.js'
import { words } from './words.js'

/** All mistakes, by their names. */
export const all: Readonly<Record<string, Mutant>> = {
  ...deciding,
  ...inserting,
  ...adjusting,
  ...summing,
  ...waiting,
  ...several,
  ...grouping,
  ...changing,
  ...words,
  ...logging,
}
