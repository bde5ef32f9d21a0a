// `npm run docs`: writes the API reference from the docstrings of src/, then builds the site into docs-site/dist.
// `npm run docs -- --check` fails where the reference in docs/ is not that of the docstrings, and changes nothing in docs/.
// `npm run docs -- --dev` serves the site, and follows changes of its pages.
// What builds it is installed here on first use: `npm ci` at the root stays as quick as it is, with one TypeScript.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { indexOf, LINK, pageOf, withTable, writeModules } from './reference.mjs'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const REFERENCE = fileURLToPath(new URL('../docs/reference/api', import.meta.url))
const LOCK = readFileSync(join(HERE, 'package-lock.json'), 'utf8')
/** The lock file that node_modules was installed by. */
const INSTALLED = join(HERE, 'node_modules/.installed-lock.json')

const PART =
  /^#{4,6} (Default|Example|Implementation of|Inherited from|Overrides|Parameters|Returns|See|Throws|Type Parameters)$/gm

/** A field of an object that the code above has already shown, without a text of its own. */
const SHOWN_FIELD = /^#{4} \w+\??\n\n```ts\n[^`]*```\n\n(?=#{4} |\*\*)/gm

const [option] = process.argv.slice(2)
if (![undefined, '--check', '--dev'].includes(option)) {
  console.error(`${option}: expected --check, --dev, or nothing`)
  process.exit(2)
}

if (!existsSync(INSTALLED) || readFileSync(INSTALLED, 'utf8') !== LOCK) {
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  writeFileSync(INSTALLED, LOCK)
}
if (option !== '--check') writeReference(REFERENCE)
else if (!isReferenceFresh()) process.exit(1)
tool('rspress', [option === '--dev' ? 'dev' : 'build'])
if (option !== '--dev') console.log(`the site is in ${join(HERE, 'dist')}`)

/** The parts of a member become bold words, so that a page's headings are its members. */
function writeReference(folder) {
  const modules = writeModules()
  tool('typedoc', ['--out', folder, ...modules.flatMap((file) => ['--entryPoints', file])])
  const texts = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
  for (const [file, text] of texts) {
    rmSync(join(folder, file))
    const parted = text.replaceAll(PART, '**$1**').replaceAll(SHOWN_FIELD, '')
    const named = parted
      .replaceAll(/\[(`?)Error\1\]\(#\)/g, '$1Error$1') // of the language
      .replaceAll(LINK, (_, to, anchor = '') => `](${pageOf(to)}${anchor})`)
    writeFileSync(join(folder, pageOf(file)), file === 'index.md' ? indexOf(named, texts) : withTable(named))
  }
}

function isReferenceFresh() {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-reference-'))
  try {
    writeReference(folder)
    const names = [...new Set([folder, REFERENCE].flatMap((at) => readdirSync(at)))]
    const stale = names.filter((name) => textOf(folder, name) !== textOf(REFERENCE, name))
    if (stale.length > 0) {
      console.error(`docs/reference/api differs from the docstrings: ${stale.join(', ')}. Run npm run docs.`)
    }
    return stale.length === 0
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function textOf(folder, name) {
  const file = join(folder, name)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

function tool(name, args) {
  run(process.execPath, [join(HERE, 'node_modules', binOf(name)), ...args])
}

/** The program of a package that is installed here, by the file, so that no other version is taken. */
function binOf(name) {
  const home = name === 'rspress' ? '@rspress/core' : name
  const { bin } = JSON.parse(readFileSync(join(HERE, 'node_modules', home, 'package.json'), 'utf8'))
  return join(home, typeof bin === 'string' ? bin : bin[name])
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: HERE, stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}
