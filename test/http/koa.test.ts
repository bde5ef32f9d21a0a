import { testFramework } from './conformance.js'
import { koaDriver } from './koa-driver.js'

testFramework(koaDriver)
