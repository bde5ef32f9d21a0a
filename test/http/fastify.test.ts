import { testFramework } from './conformance.js'
import { fastifyDriver, fastifyHttp2Driver } from './fastify-driver.js'

testFramework(fastifyDriver)
testFramework(fastifyHttp2Driver)
