import type { FrameworkDriver } from './driver.js'
import { express4Driver, express5Driver } from './express-driver.js'
import { fastifyDriver } from './fastify-driver.js'
import { fetchDriver, honoDriver } from './hono-driver.js'
import { koaDriver } from './koa-driver.js'
import { nestDriver } from './nest-driver.js'
import { http2Driver, nodeDriver } from './node-driver.js'

/** All frameworks on HTTP/1.1. */
export const http1Drivers: readonly FrameworkDriver[] = [
  nodeDriver,
  express5Driver,
  express4Driver,
  fastifyDriver,
  koaDriver,
  honoDriver,
  fetchDriver,
  nestDriver('express'),
  nestDriver('fastify'),
]

export const allDrivers: readonly FrameworkDriver[] = [...http1Drivers, http2Driver]
