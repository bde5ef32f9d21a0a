// run: full

import { testFramework } from './conformance.js'
import { express4Driver, express5Driver } from './express-driver.js'

testFramework(express5Driver)
testFramework(express4Driver)
