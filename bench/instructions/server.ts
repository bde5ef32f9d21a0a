/** A server whose instructions are counted. Prints its port; ends at SIGTERM. Arguments: the framework, and the mode. */
import type { AddressInfo } from 'node:net'
import { type FrameworkName, startServer } from './servers.js'

const [framework, mode] = process.argv.slice(2)
process.on('SIGTERM', () => process.exit(0))
const server = await startServer(framework as FrameworkName, mode!)
console.log((server.address() as AddressInfo).port)
