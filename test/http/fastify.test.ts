import { testFramework } from './conformance.js'
import { fastifyDriver } from './fastify-driver.js'

testFramework(fastifyDriver)
