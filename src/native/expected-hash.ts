import { createRequire } from 'node:module'
import { lazily } from '../core/lazily.js'

const require = createRequire(import.meta.url)
const constants = lazily(() => require('./constants.js') as typeof import('./constants.js'))

/** The hash of the constants by which TypeScript counts. An addon must have the same. */
export const expectedHash = (): string => constants().constantsHash()
