/**
 * What the servers of the case `in-situ` do with a request. Each server is one process and has several modes.
 * The first mode is its baseline: it reads the key and sets the same headers to constants. The figures of the
 * others are microseconds over that. To compare another limiter or framework, add a mode or a server here.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createLimiter } from 'millrace'
import { bareMap, LIMIT, WINDOW_MS } from '../peers.js'
import { answer, answerConstantly, keyOf } from './handlers.js'
import { IN_SITU_KEYS } from './in-situ-load.js'

/** Makes what serves the requests in one mode. */
export type Mode = () => RequestListener | Promise<RequestListener>

const limiterOf = () => createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys: 2 * IN_SITU_KEYS })

/** Reads the key and decides, then sets constant headers. */
function deciding(decide: (key: string) => boolean): RequestListener {
  return (request: IncomingMessage, response: ServerResponse) => {
    if (!decide(keyOf(request))) throw new Error('the load stays below the limit')
    answerConstantly(response)
  }
}

export const IN_SITU_SERVERS = {
  'node:http': {
    baseline: () => deciding((key) => key.length > 0),
    'a Map counter': () => deciding(bareMap()),
    'check alone': () => {
      const limiter = limiterOf()
      return deciding((key) => limiter.check(key).allowed)
    },
    'check, all figures read': () => {
      const limiter = limiterOf()
      return deciding((key) => {
        const { allowed, remaining, retryAfterMs, resetMs } = limiter.check(key)
        return allowed && remaining + retryAfterMs + resetMs > 0
      })
    },
    'check, figures in headers': () => {
      const limiter = limiterOf()
      return (request, response) => answer(response, limiter.check(keyOf(request)))
    },
  },
} satisfies Record<string, Record<string, Mode>>

export type ServerName = keyof typeof IN_SITU_SERVERS
