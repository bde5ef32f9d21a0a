import { spawnSync } from 'node:child_process'
import { test as any } from 'uvu'
import { SERVER } from './servers.js'

/** Whether tests with a server are left out. Never if MILLRACE_EVERY_TEST is set: then they fail. */
const isMissing = !process.env.MILLRACE_EVERY_TEST && spawnSync(SERVER, ['--version']).error !== undefined

if (isMissing) console.log(`not run: ${SERVER} is not installed`)

/** A test that needs a Redis server. */
export const test: typeof any = isMissing ? (any.skip as typeof any) : any

/** Runs the tests of this file. */
export const run = (): void => any.run()
