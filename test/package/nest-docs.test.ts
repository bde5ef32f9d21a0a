// run: full
// The code of docs/how-to/nest.md and of the page about @nestjs/throttler compiles with decorators, and without them Nest's users get the same types.
import { rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { linkModule, makeProject, runNode } from './project.js'
import { readText } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))
for (const name of [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-fastify',
  '@nestjs/throttler',
  '@types/node',
  'fastify',
  'reflect-metadata',
  'rxjs',
])
  linkModule(project.folder, name)
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

/** Without decorators: what they are is applied by calls. */
const BY_HAND = `
import { type CanActivate, HttpException } from '@nestjs/common'
import type { ThrottlerStorage } from '@nestjs/throttler'
import { MillraceThrottlerStorage } from 'millrace/compat/nestjs-throttler'
import { RateLimitException, RateLimitGuard, RateLimitModule, type RateLimitModuleOptions, SkipThrottle, Throttle } from 'millrace/nest'
class Cats {
  feed() {}
}
Throttle({ limit: 5, window: '15m' })(Cats)
SkipThrottle()(Cats.prototype, 'feed', Object.getOwnPropertyDescriptor(Cats.prototype, 'feed')!)
type Request = { ip: string; user: { id: number } }
const key = ({ user }: Request) => String(user.id)
export const options: RateLimitModuleOptions = { limit: 1, window: '1m', key }
export const imported = RateLimitModule.forRoot(options)
export const isGuard = (guard: RateLimitGuard): CanActivate => guard
export const isHttp = (exception: RateLimitException): HttpException => exception
export const storage: ThrottlerStorage = new MillraceThrottlerStorage({ maxKeys: 10_000 })
// @ts-expect-error a wrong option
export const wrong: RateLimitModuleOptions = { limit: 1, windw: '1m' }
// @ts-expect-error the options of @nestjs/throttler
Throttle({ default: { limit: 5, ttl: 60_000 } })
`

async function assertCompiles(code: string, file: string, options: object): Promise<void> {
  writeFileSync(join(project.folder, file), code)
  const compilerOptions = {
    target: 'es2023',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
    ...options,
  }
  writeFileSync(join(project.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  assert.equal(await runNode([tsc, '--pretty', 'false', '-p', '.'], project.folder), {
    code: 0,
    out: '',
    err: '',
  })
}

const DECORATORS = { experimentalDecorators: true, emitDecoratorMetadata: true }
const blocks = ['nest', 'migrate-from-nestjs-throttler'].flatMap((page) =>
  [...readText(`docs/how-to/${page}.md`).matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code!),
)

test('the code of the pages compiles with the decorators of Nest', async () => {
  assert.ok(blocks.length >= 6, `only ${blocks.length} blocks were found`)
  for (const [i, code] of blocks.entries()) {
    await assertCompiles(code, `block${i}.mts`, { module: 'nodenext', ...DECORATORS })
  }
})

for (const [file, module, moduleResolution] of [
  ['by-hand.mts', 'nodenext', 'nodenext'],
  ['by-hand.cts', 'nodenext', 'nodenext'],
  ['by-hand.ts', 'esnext', 'bundler'],
] as const) {
  test(`the types work without decorators: ${file}, ${moduleResolution}`, () =>
    assertCompiles(BY_HAND, file, { module, moduleResolution }))
}

test.run()
