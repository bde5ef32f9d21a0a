import { test as any, type Callback, type Context } from 'uvu'

/** Where the addon is switched off, what only it can do is left out; where it is missing, it fails. */
const register = process.env.MILLRACE_NATIVE === '0' ? any.skip : any

/** uvu's `test`, for what needs the addon. */
export const test = Object.assign((name: string, act: Callback<Context>) => void register(name, act), {
  skip: any.skip,
  run: any.run,
})
