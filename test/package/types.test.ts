// run: full
// The types in a user's project, under any strictness.
import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { linkModule, makeProject, type Outcome, runNode } from './project.js'
import { root } from './root.js'

const project = await makeProject()
test.after(() => rmSync(project.folder, { recursive: true }))
linkModule(project.folder, '@types/node')

/** Finds TypeScript 5.2, the oldest supported version. */
const requireOldest = createRequire(join(root, 'test/package/oldest-typescript/package.json'))
const COMPILERS = [createRequire(import.meta.url), requireOldest].map((require) =>
  join(dirname(require.resolve('typescript/package.json')), 'bin/tsc'),
)
const FROM_COMMONJS = `
import type { Decision } from 'millrace' with { 'resolution-mode': 'import' }
export async function decide(key: string): Promise<Decision> {
  const { createLimiter } = await import('millrace')
  return createLimiter({ limit: 1, window: '1m' }).check(key)
}
`
const REQUIRING = `
import { createLimiter, type Decision } from 'millrace'
export const decision: Decision = createLimiter({ limit: 1, window: '1m' }).check('somebody')
`

const PLAIN = `
import { attachLimiter, type AsyncLimiter, type AsyncLimiterGroup, createLimiter, group, type Limiter, type LimiterGroup, type LimiterOptions, type PoolLimiterOptions, type RulesEngineOptions } from 'millrace'
declare const fromEnvironment: string
const window = fromEnvironment
export const inline: Limiter = createLimiter({ limit: 1, window, granularity: fromEnvironment })
export const pool: AsyncLimiter = createLimiter({ limit: 1, window, engine: 'pool', pool: { maxThreads: 1 } })
export const several: Limiter = createLimiter({ rules: [{ name: 'burst', limit: 10, window: '1s' }, { name: 'hourly', limit: 1000, window }], maxKeys: 5 })
export const severalOnPool: AsyncLimiter = createLimiter({ rules: [{ name: 'burst', limit: 10, window: '1s' }], engine: 'pool', pool: { maxThreads: 1 } })
export const usedOnPool: Promise<number> = severalOnPool.usage('somebody', window, { rule: 'burst' })
export const options: RulesEngineOptions<'pool'> = { rules: [{ limit: 10, window: '1s' }], engine: 'pool' }
export const names: string[] = several.check('somebody').rules.map(({ rule }) => rule)
export const used: number = several.usage('somebody', window, { rule: 'hourly' })
export const either: Limiter | AsyncLimiter = createLimiter({ limit: 1, window } as LimiterOptions | PoolLimiterOptions)
export const made: ReturnType<typeof createLimiter> = attachLimiter(inline.share())
export const allowed: boolean[] = [inline.check('somebody').allowed, made.block('somebody', window)]
export const left: number = made.usage('somebody', window)
export const both: LimiterGroup<'user' | 'team'> = group({ user: inline, team: several })
export const mixed: AsyncLimiterGroup<'user' | 'team'> = group({ user: inline, team: pool })
export const eitherGroup: LimiterGroup<'user'> | AsyncLimiterGroup<'user'> = group({ user: either })
export const byNames: LimiterGroup = group({ user: inline } as Record<string, Limiter>)
const keys = { user: 'somebody', team: 'theirs' }
export const member: 'user' | 'team' = both.check(keys, 1, { limit: { team: { burst: 5 } } }).member
export const later: Promise<number> = mixed.reserve(keys, 5).then(({ decision }) => decision.members.team.remaining)
export const settled: number = both.reserve(keys, 5).commit(2)
// @ts-expect-error the key of a member is missing
both.check({ user: 'somebody' })
// @ts-expect-error a limit for no member
both.check(keys, 1, { limit: { device: 5 } })
// @ts-expect-error a promise is no decision
export const wrong: boolean = mixed.check(keys).allowed
`
/** Programs with one type error, and its position. */
const WRONG = {
  "limit: 'three', window: '1m'": 'limit',
  "limit: 3, window: true, engine: 'pool'": 'window',
  "limit: 3, window: '1m', windw: '1m'": 'windw',
  "limit: 3, window: '1m', engine: 'pol'": 'engine',
  "limit: 3, window: '1m', pool: { maxThreads: 1 }": 'pool',
  "limit: 3, window: '1m', engine: 'pool', pool: { maxThread: 1 }": 'maxThread',
  "limit: 3, window: '1m', onFull: 'evcit'": 'onFull',
  "rules: [{ limit: 3, window: '1m' }], onFull: 'evcit'": 'onFull',
  "rules: [{ limit: 3, window: '1m' }], maxKey: 5": 'maxKey',
  // At the whole argument: a limit is right with one rule. The error names it.
  "rules: [{ limit: 3, window: '1m' }], limit: 5": undefined,
  "rules: [{ limit: 3, window: '1m' }, { limit: 'three', window: '1m' }]": 'limit',
  "rules: [{ limit: 3, window: '1m', windw: '1m' }]": 'windw',
  "rules: [{ limit: 3, window: '1m' }], engine: 'pol'": 'engine',
  "rules: [{ limit: 3, window: '1m' }], pool: { maxThreads: 1 }": 'pool',
  "rules: [{ limit: 3, window: '1m' }], engine: 'pool', pool: { maxThread: 1 }": 'maxThread',
  "rules: 'all'": 'rules',
}

/** Checks files and the package's declarations with all strict options. */
function check(
  files: string[],
  module: string,
  moduleResolution: string,
  options: object = { target: 'es2022', types: ['node'] },
  tsc = COMPILERS[0]!,
): Promise<Outcome> {
  const compilerOptions = {
    module,
    moduleResolution,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    ...options,
  }
  writeFileSync(join(project.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  return runNode([tsc, '--pretty', 'false', '-p', '.'], project.folder)
}

const clean: Outcome = { code: 0, out: '', err: '' }

test('the types work for ES modules and CommonJS under every module resolution', async () => {
  for (const file of ['consumer.mts', 'consumer.ts'])
    copyFileSync(join(root, 'test/package/consumer.ts'), join(project.folder, file))
  writeFileSync(join(project.folder, 'loading.cts'), FROM_COMMONJS)
  writeFileSync(join(project.folder, 'requiring.cts'), REQUIRING)
  for (const module of ['node16', 'nodenext']) {
    assert.equal(await check(['consumer.mts', 'loading.cts', 'requiring.cts'], module, module), clean, module)
  }
  assert.equal(await check(['consumer.ts'], 'esnext', 'bundler'), clean)
})

const ES2020 = { target: 'es2020', lib: ['es2020'], types: [] }

test('the types need only es2020, from TypeScript 5.2; a wrong option is one error at that option', async () => {
  const lines = Object.keys(WRONG).map((options) => `createLimiter({ ${options} })`)
  const code = ["import { createLimiter } from 'millrace'", ...lines].join('\n')
  writeFileSync(join(project.folder, 'options.mts'), code)
  for (const file of ['plain.cts', 'plain.mts']) writeFileSync(join(project.folder, file), PLAIN)
  for (const tsc of COMPILERS) {
    const { out } = await check(['plain.cts', 'plain.mts', 'options.mts'], 'node16', 'node16', ES2020, tsc)
    const found = [...out.matchAll(/^([\w/.-]+)\((\d+),(\d+)\): error/gm)].map(([, file, line, column]) =>
      file === 'options.mts'
        ? /^\w+/.exec(code.split('\n')[Number(line) - 1]!.slice(Number(column) - 1))?.[0]
        : file,
    )
    assert.equal(found, Object.values(WRONG), out)
    assert.match(out, "pool is only allowed with engine: 'pool'")
    assert.match(out, /'limit'.*\n.*"this option belongs into a rule of rules"/)
  }
})

test('an editor completes durations and other literals', () => {
  const ts: typeof import('./oldest-typescript/node_modules/typescript/lib/typescript.js') =
    requireOldest('typescript')
  const file = join(project.folder, 'completed.mts')
  const code = "import { createLimiter } from 'millrace'\ncreateLimiter({ limit: 1, window: '', edge: '' })\n"
  writeFileSync(file, code)
  const { Node16: module } = ts.ModuleKind
  const { Node16: moduleResolution } = ts.ModuleResolutionKind
  const service = ts.createLanguageService({
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name) => {
      const text = ts.sys.readFile(name)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => project.folder,
    getCompilationSettings: () => ({ module, moduleResolution, target: ts.ScriptTarget.ES2020, types: [] }),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
  })
  const completed = (marker: string) =>
    service
      .getCompletionsAtPosition(file, code.indexOf(marker) + marker.length, {})
      ?.entries.map((e) => e.name)
  assert.ok(completed("window: '")?.includes('1m'))
  assert.equal(completed("edge: '")?.sort(), ['smooth', 'strict'])
})

test('a type error is detected', async () => {
  writeFileSync(join(project.folder, 'wrong.mts'), "import { nothing } from 'millrace'\nnothing()\n")
  assert.match((await check(['wrong.mts'], 'node16', 'node16')).out, 'TS2305')
})

test.run()
