import { test as any, type Callback, type Context } from 'uvu'

/** Skips the tests that need the addon if MILLRACE_NATIVE is 0. They fail if the addon is missing. */
const register = process.env.MILLRACE_NATIVE === '0' ? any.skip : any

/** uvu's `test` for tests that need the addon. */
export const test = Object.assign((name: string, act: Callback<Context>) => void register(name, act), {
  skip: any.skip,
  run: any.run,
})
