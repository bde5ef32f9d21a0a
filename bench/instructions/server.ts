/**
 * A server whose instructions are counted. Prints its port; ends at SIGTERM. Arguments: the framework, the mode, and the
 * window in ms if it is not a minute.
 */
import type { AddressInfo } from 'node:net'
import { type FrameworkName, startServer } from './servers.js'

const [framework, mode, windowMs] = process.argv.slice(2)
process.on('SIGTERM', () => process.exit(0))
const server = await startServer(
  framework as FrameworkName,
  mode!,
  windowMs === undefined ? undefined : Number(windowMs),
)
console.log((server.address() as AddressInfo).port)
