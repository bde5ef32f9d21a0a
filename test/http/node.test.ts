import { testFramework } from './conformance.js'
import { http2Driver, nodeDriver } from './node-driver.js'

testFramework(nodeDriver)
testFramework(http2Driver)
