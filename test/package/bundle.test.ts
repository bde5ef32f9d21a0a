// run: typescript, full
// Bundled servers, run from a folder without node_modules.
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { build } from 'esbuild-wasm'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTRIES } from '../entries.js'
import { countOf, example, withServers } from '../examples/program.js'
import { linkModule, makeProject, type Outcome, runNode } from './project.js'
import { root } from './root.js'

const project = await makeProject()
const home = mkdtempSync(join(tmpdir(), 'millrace-bundle-'))
const deployed = join(home, 'dist/server')
test.after(() => {
  rmSync(project.folder, { recursive: true })
  rmSync(home, { recursive: true })
})

/** Bundles files of the project. Silent, because esbuild-wasm writes endlessly to a stderr that is a file. */
async function bundle(
  entryPoints: string[],
  format: 'esm' | 'cjs',
  extension: string,
  external: string[] = [],
): Promise<void> {
  const { errors, warnings } = await build({
    absWorkingDir: project.folder,
    entryPoints,
    bundle: true,
    platform: 'node',
    format,
    external,
    outdir: deployed,
    outExtension: { '.js': extension },
    logLevel: 'silent',
  })
  assert.equal([errors, warnings], [[], []])
}

const bundled = (name: string) => join(root, 'test/package/bundled', name)
for (const file of [bundled('server.mjs'), bundled('worker.mjs'), bundled('pool.mjs'), example('http.mjs')])
  copyFileSync(file, join(project.folder, file.slice(file.lastIndexOf('/') + 1)))

test('a bundled server limits', async () => {
  await bundle(['http.mjs'], 'esm', '.mjs')
  await withServers(join(deployed, 'http.mjs'), 1, async ([address]) => {
    const responses = await Promise.all(Array.from({ length: 15 }, () => fetch(address!)))
    assert.equal([countOf(responses, 200), countOf(responses, 429)], [10, 5])
  })
})

test('a server and its worker thread, each with its own bundle of the package, share one limit', async () => {
  await bundle(['server.mjs', 'worker.mjs'], 'esm', '.mjs')
  await withServers(join(deployed, 'server.mjs'), 1, async ([address]) => {
    const responses: Response[] = []
    for (let i = 0; i < 8; i++) responses.push(await fetch(`${address}/thread`), await fetch(`${address}/`))
    assert.equal(
      responses.map(({ status }) => status),
      Array.from({ length: 16 }, (_, i) => (i < 10 ? 200 : 429)),
    )
  })
})

test('a bundle in CommonJS limits', async () => {
  await bundle(['http.mjs'], 'cjs', '.cjs')
  await withServers(join(deployed, 'http.cjs'), 1, async ([address]) => {
    const { headers } = await fetch(address!)
    assert.match(headers.get('RateLimit')!, 'r=9')
  })
})

test('each entry runs in a bundle, with what it imports bundled too, or external', async () => {
  linkModule(project.folder, 'lmdb')
  const entries = ['express', 'redis', 'memcached', 'fetch', 'config/file', 'compat/limiter']
  const lines = entries.map((name, i) => `import * as all${i} from 'millrace/${name}'`)
  const parts = entries.map((_, i) => `typeof Object.values(all${i})[0]`)
  const write = (file: string, code: string) => writeFileSync(join(project.folder, file), code)
  write('entries.mjs', `${lines.join('\n')}\nconsole.log([${parts}].join())`)
  write('lmdb.mjs', "import { lmdbConfig } from 'millrace/config/lmdb'\nconsole.log(typeof lmdbConfig)")
  for (const [format, extension] of [
    ['esm', '.mjs'],
    ['cjs', '.cjs'],
  ] as const) {
    await bundle(['entries.mjs'], format, extension)
    const said = entries.map(() => 'function').join()
    assert.equal(await runDeployed(`entries${extension}`), { code: 0, out: `${said}\n`, err: '' })
    await bundle(['lmdb.mjs'], format, extension, ['lmdb'])
    const link = join(home, 'node_modules')
    symlinkSync(join(project.folder, 'node_modules'), link, 'junction')
    assert.equal(await runDeployed(`lmdb${extension}`), { code: 0, out: 'function\n', err: '' })
    rmSync(link)
  }
})

const runDeployed = (name: string): Promise<Outcome> => runNode([join(deployed, name)], deployed)

test('the error of a bundled pool says how to mark the package external, and then it works', async () => {
  for (const [format, extension] of [
    ['esm', '.mjs'],
    ['cjs', '.cjs'],
  ] as const) {
    await bundle(['pool.mjs'], format, extension)
    const { code, out, err } = await runDeployed(`pool${extension}`)
    assert.is(code, 0, err)
    assert.match(out, /^ERR_MILLRACE_BUNDLED: engines\/pool\/worker\.js: /)
    assert.match(out, '--external:millrace')
    assert.match(out, "serverExternalPackages: ['millrace']")
  }
  await bundle(['pool.mjs'], 'esm', '.mjs', ['millrace'])
  symlinkSync(join(project.folder, 'node_modules'), join(home, 'node_modules'), 'junction')
  assert.equal(await runDeployed('pool.mjs'), { code: 0, out: '9 remaining\n', err: '' })
})

/** These bundle a package that a browser has not either. */
const LOADS_PEER = /^(?:nest|compat\/rate-limiter-flexible|config\/(?:lmdb|dynamodb|mongodb))$/
/** As the edge runtime of Next.js has it. */
const edgeProcess = {
  get getBuiltinModule(): never {
    throw new Error('A Node.js API is used')
  },
}

test('each entry throws an error that says what to use where there are no modules of Node.js', async () => {
  const names = ['', ...Object.keys(ENTRIES).filter((name) => !LOADS_PEER.test(name))]
  for (const [i, name] of names.entries()) {
    const code = `import * as all from '${['millrace', ...(name ? [name] : [])].join('/')}'\nglobalThis.all = all`
    writeFileSync(join(project.folder, `elsewhere${i}.mjs`), code)
  }
  const { outputFiles } = await build({
    absWorkingDir: project.folder,
    entryPoints: names.map((_, i) => `elsewhere${i}.mjs`),
    bundle: true,
    platform: 'browser',
    format: 'iife',
    outdir: deployed,
    write: false,
    logLevel: 'silent',
  })
  assert.is(outputFiles.length, names.length)
  for (const { text, path } of outputFiles) {
    for (const globals of [
      {},
      { process: { env: {} } },
      { EdgeRuntime: 'edge-runtime', process: edgeProcess },
    ]) {
      assert.throws(
        () => runInNewContext(text, globals),
        ({ message }: Error) =>
          /^millrace needs the modules of Node\.js 20\.19 .*serverless\.md/.test(message),
        path,
      )
    }
  }
})

test.run()
