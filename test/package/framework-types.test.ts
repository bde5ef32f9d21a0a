// run: full
// The types of each framework's module, in a project that has no other framework, with exactOptionalPropertyTypes.
import { rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { linkModule, makeProject, runNode } from './project.js'

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))

/** Options that a program may not set: each may be undefined. */
const OPTIONS = `
declare const maybe: { limit?: number | undefined, text?: string | undefined, flag?: boolean | undefined }
const options = {
  limit: 1, window: '1m', name: maybe.text, granularity: undefined, edge: undefined, burst: maybe.limit, unit: undefined,
  rules: undefined, limiter: undefined, maxKeys: maybe.limit, clock: undefined, engine: undefined, pool: undefined,
  shared: undefined, nearLimit: maybe.limit, key: undefined, trustProxy: maybe.limit, ipv6Subnet: maybe.limit,
  nat64Prefixes: undefined, cost: undefined, keyTimeoutMs: maybe.limit, skip: undefined, allow: undefined,
  deny: undefined, ignoreUserAgents: undefined, routes: undefined, statusCode: maybe.limit, message: maybe.text,
  handler: undefined, onLimited: undefined, countIf: undefined, ban: undefined, delay: undefined, shadow: maybe.flag,
  onError: undefined, standard: undefined, exposeHeaders: maybe.flag,
} as const
const members = { account: { limit: 5, window: '15m', key: undefined, limiter: undefined, edge: undefined } } as const
`

/** By module: the packages that a user of it has, and a program. */
const PROGRAMS: Readonly<Record<string, readonly [packages: readonly string[], code: string]>> = {
  http: [
    ['@types/node'],
    `
import { createServer, type IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { type Decision, groupLimit, rateLimit, writeHeaders } from 'millrace/http'
const limited = rateLimit(options)
const grouped = groupLimit({ members, handler: (_, response, { member }) => void response.end(member) })
createServer((request, response) => limited(request, response, () => response.end()))
export const decisionOf = (request: IncomingMessage | Http2ServerRequest): Decision | undefined => request.rateLimit
// @ts-expect-error it may be missing
export const wrong = (request: IncomingMessage): Decision => request.rateLimit
export const write = (headers: Headers, decision: Decision) => writeHeaders(headers, decision, { limiter: undefined })
void grouped.reset({ account: 'alice' })
// @ts-expect-error a group forgets keys by the names of members
void grouped.reset('alice')
`,
  ],
  web: [
    ['@types/node'],
    `
import { type Decision, groupLimit, rateLimit } from 'millrace/web'
export const one = rateLimit(options, (request) => new Response(String(request.rateLimit?.remaining)))
// @ts-expect-error it may be missing
export const wrong = rateLimit({ ...options }, ({ rateLimit }) => new Response(String(rateLimit.remaining)))
export const group = groupLimit({ members, address: undefined }, (request) => {
  const decision: Decision | undefined = request.rateLimit
  return Response.json(decision)
})
`,
  ],
  express: [
    ['@types/node', '@types/express', 'express'],
    `
import express from 'express'
import { type Decision, groupLimit, rateLimit } from 'millrace/express'
const app = express()
app.use(rateLimit(options))
app.post('/login', groupLimit({ members }), (request, response) => {
  const decision: Decision | undefined = request.rateLimit
  // @ts-expect-error it may be missing
  response.json(request.rateLimit.remaining)
  response.json(decision)
})
`,
  ],
  fastify: [
    ['@types/node', 'fastify'],
    `
import Fastify from 'fastify'
import { type Decision, groupLimit, rateLimit } from 'millrace/fastify'
const app = Fastify()
app.register(rateLimit, { ...options, hook: undefined, global: undefined })
app.register(groupLimit, { members, hook: 'preHandler' })
app.get('/', { config: { rateLimit: { limit: 1, window: '1m', groupId: undefined } } }, (request) => {
  const decision: Decision | undefined = request.rateLimit
  // @ts-expect-error it may be missing
  return [decision, request.rateLimit.remaining]
})
`,
  ],
  koa: [
    ['@types/node', '@types/koa', 'koa'],
    `
import Koa from 'koa'
import { groupLimit, rateLimit } from 'millrace/koa'
const app = new Koa()
app.use(rateLimit(options))
app.use(groupLimit({ members, handler: (context, { member }) => void (context.body = member) }))
`,
  ],
  hono: [
    ['@types/node', 'hono'],
    `
import { Hono } from 'hono'
import { type Decision, groupLimit, rateLimit } from 'millrace/hono'
const app = new Hono()
app.use(rateLimit({ ...options, address: undefined }))
app.use(groupLimit({ members }))
app.get('/', (context) => {
  const decision: Decision | undefined = context.get('rateLimit')
  // @ts-expect-error it may be missing
  return context.json([decision, context.get('rateLimit').remaining])
})
`,
  ],
  nest: [
    ['@types/node', '@nestjs/common', '@nestjs/core', 'rxjs', 'reflect-metadata'],
    `
import { type Decision, GroupLimitGuard, groupLimit, type Limited, RateLimitModule, rateLimit } from 'millrace/nest'
export const used = [rateLimit(options), groupLimit({ members }), new GroupLimitGuard({ members })]
export const imported = RateLimitModule.forRoot({ ...options, getRequestResponse: undefined })
export const decisionOf = ({ rateLimit }: Limited<{ url: string }>): Decision | undefined => rateLimit
// @ts-expect-error it may be missing
export const wrong = ({ rateLimit }: Limited<{ url: string }>): Decision => rateLimit
`,
  ],
}

const ALL = Object.values(PROGRAMS).flatMap(([packages]) => packages)

for (const [name, [packages, code]] of Object.entries(PROGRAMS)) {
  test(`millrace/${name}: options may be undefined, the decision may be missing, no other types are needed`, async () => {
    for (const each of ['@types', '@nestjs', ...ALL])
      rmSync(join(project.folder, 'node_modules', each), { recursive: true, force: true })
    for (const each of packages) linkModule(project.folder, each)
    writeFileSync(join(project.folder, 'program.mts'), `${OPTIONS}${code}`)
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      types: ['node'],
    }
    writeFileSync(
      join(project.folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['program.mts'] }),
    )
    const { out } = await runNode([tsc, '--pretty', 'false', '-p', '.'], project.folder)
    // What the declarations of other packages lack is not ours.
    assert.equal(
      out.split('\n').filter((line) => /^(?:program|node_modules\/millrace\/)/.test(line)),
      [],
    )
  })
}

test.run()
