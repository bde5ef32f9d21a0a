import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { createLimiter, type Decision, type Limiter, type Size } from 'millrace'
import type { HeaderAccess } from '#millrace/http/headers/header-access.js'
import { RateLimitHeaders, type Standard } from '#millrace/http/headers/headers.js'
import { type Benchmark, type Contender, type Effort, type Goal, ratioOf } from '../benchmark.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { WINDOW_MS } from '../peers.js'
import { timeDecisions } from '../timing.js'

/** Writes the headers of a decision. */
type Write = (response: ServerResponse, decision: Decision) => void

/** A limiter, and how much its clients use of it. */
interface Service {
  readonly keys: number
  readonly limiter: (keys: number) => Limiter
}

/** Each client sends some 60 requests, all at different times: some hundred different values. */
const USUAL: Service = { keys: 10_000, limiter: oneRule(200) }
/** Each client sends some 600 requests: some two thousand different values. */
const BUSY: Service = { keys: 1_000, limiter: oneRule(2_000) }
/** Quantities, of which no two are equal. */
const BYTES: Service = { keys: 10_000, limiter: oneRule('1TB', '1MB') }
const TWO_RULES: Service = {
  keys: 10_000,
  limiter: (maxKeys) => {
    const rules = [
      { name: 'burst', limit: 200, window: WINDOW_MS },
      { name: 'hourly', limit: 4_000, window: '1h' },
    ]
    return createLimiter({ rules, maxKeys })
  },
}

function oneRule(limit: Size, unit?: Size): Service['limiter'] {
  const units = unit === undefined ? {} : { unit }
  return (maxKeys) => createLimiter({ limit, ...units, window: WINDOW_MS, maxKeys })
}

const workload = (keys: number, { operations }: Effort) => ({
  keyAt: cachedKeys(keys),
  order: randomOrder(keys, operations),
  filled: inOrder(keys),
})

const ACCESS: HeaderAccess<ServerResponse> = {
  set(response, name, value) {
    response.setHeader(name, value)
  },
  get: (response, name) => response.getHeader(name) as string | undefined,
}

/** Reads the figures that the headers show, and sets two headers that never change. */
const constantsOfOne: Write = (response, { remaining, resetMs }) => {
  if (remaining < 0 || resetMs < 0) throw new Error('no figures')
  setConstants(response)
}

const constantsOfTwo: Write = (response, { rules }) => {
  for (let i = 0; i < rules.length; i++) {
    const { remaining, resetMs } = rules[i]!
    if (remaining < 0 || resetMs < 0) throw new Error('no figures')
  }
  setConstants(response)
}

function setConstants(response: ServerResponse): void {
  response.setHeader('RateLimit', '"default";r=150;t=60')
  response.setHeader('RateLimit-Policy', '"default";q=200;w=60')
}

function writeIn(standard: Standard, limiter: Limiter): Write {
  const headers = new RateLimitHeaders(standard, limiter, ACCESS)
  return (response, decision) => headers.write(response, decision, false)
}

/** The headers of one response are set again and again: the time is that of their values. */
function contender(name: string, { keys, limiter: make }: Service, writeFor: (limiter: Limiter) => Write) {
  const measure: Contender['measure'] = (effort) => {
    const limiter = make(keys)
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    const write = writeFor(limiter)
    return timeDecisions(workload(keys, effort), (key) => {
      const decision = limiter.check(key)
      write(response, decision)
      return decision.allowed
    })
  }
  return { name, measure }
}

const constants = (name: string, service: Service, write = constantsOfOne) =>
  contender(name, service, () => write)

const written = (name: string, service: Service, standard: Standard = 'draft-11') =>
  contender(name, service, (limiter) => writeIn(standard, limiter))

/** The time in that of setting two headers that never change. */
const times = (name: string, base: string): Goal => ({
  label: `${name} / ${base}`,
  unit: 'x',
  value: ratioOf(name, base),
})

const USUAL_CONSTANTS = 'constant headers'
const BUSY_CONSTANTS = 'constant headers, busy clients'
const BYTES_CONSTANTS = 'constant headers, bytes'
const TWO_CONSTANTS = 'constant headers, two rules'

export const headers: Benchmark = {
  title: 'check(key), and the RateLimit headers of its decision, set on one response of node:http',
  units: { ns: 'nanoseconds per decision and its headers' },
  contenders: [
    constants(USUAL_CONSTANTS, USUAL),
    written('draft-11', USUAL),
    written('draft-7', USUAL, 'draft-7'),
    written('draft-6, four headers', USUAL, 'draft-6'),
    written('x-ratelimit, three headers', USUAL, 'x-ratelimit'),
    constants(BUSY_CONSTANTS, BUSY),
    written('draft-11, busy clients', BUSY),
    constants(BYTES_CONSTANTS, BYTES),
    written('draft-11, bytes', BYTES),
    constants(TWO_CONSTANTS, TWO_RULES, constantsOfTwo),
    written('draft-11, two rules', TWO_RULES),
  ],
  goals: [
    times('draft-11', USUAL_CONSTANTS),
    times('draft-7', USUAL_CONSTANTS),
    times('draft-6, four headers', USUAL_CONSTANTS),
    times('x-ratelimit, three headers', USUAL_CONSTANTS),
    times('draft-11, busy clients', BUSY_CONSTANTS),
    times('draft-11, bytes', BYTES_CONSTANTS),
    times('draft-11, two rules', TWO_CONSTANTS),
  ],
}
