// run: full

import { testFramework } from './conformance.js'
import { koaDriver, koaHttp2Driver } from './koa-driver.js'

testFramework(koaDriver)
testFramework(koaHttp2Driver)
