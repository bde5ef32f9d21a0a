// Makes build/ a package of the name `millrace`, for the tests and benchmarks in it: by default they import the modules
// of build/lib/, `millrace` as well as `#millrace/...`, so that a process has one copy of each. With the condition
// `millrace-bundle` (`node --conditions=millrace-bundle`), `millrace` is dist/, as published.
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ENTRIES } from './entries.mjs'

const BUILD = fileURLToPath(new URL('../build/', import.meta.url))
/** What the modules of build/lib/ and the condition find beside them. */
const LINKS = ['dist', 'prebuilds']
const bundled = (entry) => ({ import: `./dist/${entry}.mjs`, require: `./dist/${entry}.js` })
const manifest = {
  name: 'millrace',
  private: true,
  type: 'module',
  exports: {
    '.': { 'millrace-bundle': bundled('index'), default: './lib/index.js' },
    './*': { 'millrace-bundle': bundled('entries/*'), default: './lib/entries/*.js' },
    './package.json': './package.json',
  },
  imports: { '#millrace/*': './lib/*' },
}

writeFileSync(join(BUILD, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
for (const name of LINKS) {
  // The link of an earlier build may lead to a folder that is not there yet, or to another one.
  rmSync(join(BUILD, name), { force: true })
  symlinkSync(join(BUILD, '..', name), join(BUILD, name), 'junction')
}
for (const [name, source] of Object.entries(ENTRIES)) {
  const entry = `entries/${name}`
  const path = posix.relative(dirname(entry), source)
  const isDefault = source === 'http/fastify'
  const text = `export * from '${path}.js'\n${isDefault ? `export { default } from '${path}.js'\n` : ''}`
  mkdirSync(dirname(join(BUILD, 'lib', entry)), { recursive: true })
  for (const ending of ['js', 'd.ts']) writeFileSync(join(BUILD, 'lib', `${entry}.${ending}`), text)
}

// piscina requires the worker of a pool. Node 20 aborts the process if a thread is ended while it requires a graph of ES
// modules, so the required module has no imports. In dist/ the worker is CommonJS.
const [worker, imported] = ['worker', 'worker-module'].map((name) =>
  join(BUILD, `lib/engines/pool/${name}.js`),
)
renameSync(worker, imported)
writeFileSync(
  worker,
  "export const serve = async (task) => (await import('./worker-module.js')).serve(task)\n",
)
