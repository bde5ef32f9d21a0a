// uvu's `test` for tests that need a server. They are skipped if it is not installed, and so are the hooks
// that start it. If MILLRACE_EVERY_TEST is set they run, and fail.
import { test as any, type Callback, type Context } from 'uvu'
import { isInstalled, missing, type Program } from './programs.js'

type Register = (name: string, act: Callback<Context>) => void

export interface ServerTest extends Register {
  readonly skip: Register
  /** A hook before all tests. */
  readonly before: (act: Callback<Context>) => void
  /** A hook after all tests. */
  readonly after: (act: Callback<Context>) => void
  readonly run: () => void
}

/** `test` for tests that start redis-server, or what MILLRACE_REDIS_SERVER names. */
export const redisTest = testWith('redis-server')
/** `test` for tests that start memcached. */
export const memcachedTest = testWith('memcached')
/** `test` for tests that start prometheus, or run its promtool. */
export const prometheusTest = testWith('prometheus')
/** `test` for tests that start nginx. */
export const nginxTest = testWith('nginx')
/** `test` for tests that start haproxy. */
export const haproxyTest = testWith('haproxy')
/** `test` for tests that run systemd-analyze. */
export const systemdTest = testWith('systemd-analyze')

function testWith(program: Program): ServerTest {
  let isSkipped: boolean | undefined
  /** Prints the reason at the first test that is skipped. */
  const skips = () => {
    if (isSkipped === undefined) {
      isSkipped = !process.env.MILLRACE_EVERY_TEST && !isInstalled(program)
      if (isSkipped) console.log(`not run: ${missing(program)}`)
    }
    return isSkipped
  }
  return Object.assign((name: string, act: Callback<Context>) => void (skips() ? any.skip : any)(name, act), {
    skip: any.skip as Register,
    before: (act: Callback<Context>) => void (skips() || any.before(act)),
    after: (act: Callback<Context>) => void (skips() || any.after(act)),
    run: any.run,
  })
}
