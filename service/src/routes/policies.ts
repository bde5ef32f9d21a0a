// Policies of keys, in the configuration store of the engines.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ConfigStore, Policy } from 'millrace/config/memory'
import type { Engine } from '../engine.js'
import { problemOf, ServiceError } from '../http/problem.js'
import { ANY_OBJECT, answers, BOOLEAN, NUMBER, object, PROBLEM, REFUSED_BODY, TEXT } from '../http/schemas.js'

const MOST_LISTED = 1_000
const POLICY_KEY = { type: 'string', minLength: 1, maxLength: 512 }
/** 404: there is no store, or no policy. */
const CODES = [...REFUSED_BODY, 404]
const KEYED = object({ key: POLICY_KEY }, ['key'])
const VERSION = object({ version: NUMBER }, ['version'])

interface List {
  readonly prefix?: string
  readonly after?: string
  readonly n?: number
}

export function policyRoutes(app: FastifyInstance, engine: Engine): void {
  const store = (): ConfigStore => {
    if (engine.policies !== undefined) return engine.policies.store
    throw new ServiceError(
      404,
      'ERR_MILLRACE_NO_POLICIES',
      'This engine has no store of policies: see the option policies.',
    )
  }
  const read = { scope: 'read' } as const
  const change = { scope: 'change' } as const

  app.post<{ Body: List }>(
    '/v1/policies/list',
    {
      config: read,
      schema: {
        summary: 'A page of policies, in the order of their keys',
        body: object({ prefix: TEXT, after: TEXT, n: { type: 'integer', minimum: 1, maximum: MOST_LISTED } }),
        response: answers(
          object(
            {
              policies: {
                type: 'array',
                items: object({ key: TEXT, policy: ANY_OBJECT, version: NUMBER, error: PROBLEM }, ['key']),
              },
              next: { type: 'string', description: 'The value of `after` for the next page.' },
            },
            ['policies'],
          ),
          CODES,
        ),
      },
    },
    async ({ body: { prefix, after, n = 100 } }) => {
      const page = await store().list({
        limit: n,
        ...(prefix !== undefined && { prefix }),
        ...(after !== undefined && { after }),
      })
      const policies = page.map((each) =>
        each.policy === undefined ? { key: each.key, error: problemOf(each.error) } : each,
      )
      return page.length < n ? { policies } : { policies, next: page.at(-1)!.key }
    },
  )
  app.post<{ Body: { key: string } }>(
    '/v1/policies/get',
    {
      config: read,
      schema: {
        summary: 'The policy of exactly this key',
        body: KEYED,
        response: answers(object({ policy: ANY_OBJECT, version: NUMBER }, ['policy', 'version']), CODES),
      },
    },
    async ({ body: { key } }, reply) => {
      const found = await store().get(key)
      if (found === undefined)
        throw new ServiceError(404, 'ERR_MILLRACE_NO_POLICY', 'This key has no policy.')
      reply.header('etag', `"${found.version}"`)
      return { policy: found.policy, version: found.version }
    },
  )
  app.post<{ Body: { key: string; policy: Policy } }>(
    '/v1/policies/put',
    {
      config: change,
      schema: {
        summary: 'Stores a policy. If-Match: the version that it replaces; If-None-Match: * for a new one',
        body: object({ key: POLICY_KEY, policy: ANY_OBJECT }, ['key', 'policy']),
        response: answers(VERSION, [...CODES, 412]),
      },
    },
    async (request, reply) => {
      const { key, policy } = request.body
      const { version } = await store().put(key, policy, ifVersion(request))
      reply.header('etag', `"${version}"`)
      return { version }
    },
  )
  app.post<{ Body: { key: string } }>(
    '/v1/policies/delete',
    {
      config: change,
      schema: {
        summary: 'Deletes a policy',
        body: KEYED,
        response: answers(object({ deleted: BOOLEAN }, ['deleted']), [...CODES, 412]),
      },
    },
    async (request) => ({ deleted: await store().delete(request.body.key, ifVersion(request)) }),
  )
}

/** The version that the key must have. */
function ifVersion({ headers }: FastifyRequest): { ifVersion?: number | null } {
  const { 'if-match': match, 'if-none-match': none } = headers
  if (none === '*' && match === undefined) return { ifVersion: null }
  const [, version] = /^"?(\d+)"?$/.exec(match ?? '') ?? []
  if (match === undefined && none === undefined) return {}
  if (version === undefined || none !== undefined) {
    const field = none === undefined ? 'If-Match' : 'If-None-Match'
    throw new ServiceError(
      400,
      'ERR_MILLRACE_INVALID_OPTION',
      `${field}: expected a version such as "3", or If-None-Match: *`,
      {
        field,
      },
    )
  }
  return { ifVersion: Number(version) }
}
