import { sized } from '../size.js'
import type { FrameworkDriver } from './driver.js'
import { fastifyDriver } from './fastify-driver.js'
import { http2Driver, nodeDriver } from './node-driver.js'

/** The frameworks on HTTP/1.1: in the quick tests node:http and Fastify, at full size all. */
export const http1Drivers: readonly FrameworkDriver[] = await sized({
  quick: async () => [nodeDriver, fastifyDriver],
  async full() {
    const { express4Driver, express5Driver } = await import('./express-driver.js')
    const { fetchDriver, honoDriver } = await import('./hono-driver.js')
    const { koaDriver } = await import('./koa-driver.js')
    const { nestDriver } = await import('./nest-driver.js')
    const onNest = [nestDriver('express'), nestDriver('fastify')]
    const onRequests = [honoDriver, fetchDriver]
    return [nodeDriver, express5Driver, express4Driver, fastifyDriver, koaDriver, ...onRequests, ...onNest]
  },
})()

export const allDrivers: readonly FrameworkDriver[] = [...http1Drivers, http2Driver]
