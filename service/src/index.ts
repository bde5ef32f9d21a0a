export type { AnyLimiter, Limiters } from './limiters.js'
export { type Parts, type Served, type ServeOptions, serve } from './serve.js'
