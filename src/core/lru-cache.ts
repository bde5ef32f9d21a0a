import { createRequire } from 'node:module'
import { lazily } from './lazily.js'

const require = createRequire(import.meta.url)
/** The package lru-cache, loaded at first use: a limiter without a store, or before it has asked one, needs none. */
export const lruCache = lazily(() => require('lru-cache') as typeof import('lru-cache'), 'creation')
