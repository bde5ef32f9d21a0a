import { testFramework } from './conformance.js'
import { fetchDriver, honoDriver } from './hono-driver.js'

testFramework(honoDriver)
testFramework(fetchDriver)
