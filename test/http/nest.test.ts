// run: full

import { testFramework } from './conformance.js'
import { nestDriver, PLATFORMS } from './nest-driver.js'

for (const platform of PLATFORMS) testFramework(nestDriver(platform))
