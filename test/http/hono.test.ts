// run: full

import { testFramework } from './conformance.js'
import { fetchDriver, honoDriver, honoHttp2Driver } from './hono-driver.js'

testFramework(honoDriver)
testFramework(honoHttp2Driver)
testFramework(fetchDriver)
