// The schemas of requests and answers. `/openapi.json` has them, and each request is checked by them.
export interface Schema {
  readonly [keyword: string]: unknown
}

/** An object with these fields only. */
export const object = (properties: Schema, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

const LONGEST_KEY = 65_536
const NUMBER = { type: 'number' }
const BOOLEAN = { type: 'boolean' }
const TEXT = { type: 'string' }
export const KEY = { type: 'string', minLength: 1, maxLength: LONGEST_KEY }
export const COST = { type: 'integer', minimum: 0 }
export const LIMITER = { type: 'string', description: 'The name of a limiter. Default: the first one.' }
const FIGURE = { anyOf: [NUMBER, { const: 'Infinity' }] }
export const TOKEN = { type: 'string', minLength: 1, maxLength: 2 ** 20 }
const LIMIT = { anyOf: [FIGURE, { type: 'object', additionalProperties: FIGURE }] }

const CHECK = { key: KEY, cost: COST, limiter: LIMITER, limit: LIMIT }
const CHECK_ONE = object({ ...CHECK, token: BOOLEAN }, ['key'])

/** One check, or a list of them. */
export const checkBody = (most: number): Schema => {
  const checks = { type: 'array', minItems: 1, maxItems: most, items: object(CHECK, ['key']) }
  return {
    type: 'object',
    if: { required: ['checks'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: object({ checks, token: BOOLEAN }, ['checks']),
    else: CHECK_ONE,
  }
}

const SHADOW = object({ allowed: BOOLEAN, retryAfterMs: FIGURE }, ['allowed', 'retryAfterMs'])
const PART = {
  rule: TEXT,
  allowed: BOOLEAN,
  limit: FIGURE,
  remaining: FIGURE,
  retryAfterMs: FIGURE,
  resetMs: FIGURE,
  blocked: BOOLEAN,
  shadow: SHADOW,
}
const PART_NAMES = ['rule', 'allowed', 'limit', 'remaining', 'retryAfterMs', 'resetMs']
const FIELDS = {
  ...PART,
  retryAfterSeconds: NUMBER,
  source: TEXT,
  rules: { type: 'array', items: object(PART, PART_NAMES) },
}
export const DECISION = object({ ...FIELDS, token: TEXT, reservation: TEXT }, [
  ...PART_NAMES,
  'retryAfterSeconds',
])

export const PROBLEM = object(
  {
    type: TEXT,
    title: TEXT,
    status: { type: 'integer' },
    detail: TEXT,
    code: { type: 'string', pattern: '^ERR_MILLRACE_' },
    field: TEXT,
    expected: TEXT,
    mayBeCharged: BOOLEAN,
    decision: DECISION,
  },
  ['type', 'title', 'status', 'detail', 'code'],
)

const DECISIONS = object(
  { decisions: { type: 'array', items: { anyOf: [DECISION, object({ error: PROBLEM }, ['error'])] } } },
  ['decisions'],
)
export const CHECK_ANSWER = { anyOf: [DECISION, DECISIONS] }

/** What any route answers to a request that it does not take. */
export const REFUSED = [401, 403]
/** The same of a route with a body, and a store behind it. */
export const REFUSED_BODY = [...REFUSED, 400, 413, 415, 503]

const problemAnswer = (description: string): Schema => ({
  description,
  content: { 'application/problem+json': { schema: PROBLEM } },
})

/** The answers of a route: one that succeeds, and problems. */
export const answers = (success: Schema, codes: readonly number[] = REFUSED_BODY): Schema => ({
  200: { description: 'The answer.', ...success },
  ...Object.fromEntries(codes.map((code) => [code, problemAnswer('A problem (RFC 9457).')])),
  default: problemAnswer('Any other problem, such as 500.'),
})

export const RULE = {
  type: 'object',
  properties: {
    name: TEXT,
    limit: FIGURE,
    windowMs: NUMBER,
    granularityMs: NUMBER,
    edge: TEXT,
    algorithm: TEXT,
    align: TEXT,
    period: TEXT,
    timeZone: TEXT,
    burst: NUMBER,
    maxLimit: NUMBER,
    unit: NUMBER,
    countRefused: BOOLEAN,
    shadow: BOOLEAN,
  },
  required: ['name', 'limit', 'windowMs', 'granularityMs'],
}
export const ANY_OBJECT = { type: 'object', additionalProperties: true }
export { BOOLEAN, NUMBER, TEXT }
