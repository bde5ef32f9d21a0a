// run: typescript
// The commands of npm that the texts of the package name: pages, comments, messages, workflows.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, root } from './root.js'

const { COMMANDS }: { COMMANDS: Readonly<Record<string, object>> } = await import(
  new URL('../../../scripts/dev.mjs', import.meta.url).href
)
const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> }

const MOST_LINES = 300
const PLACES = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'binding.gyp', '.ci', '.github'],
  ...['docs', 'src', 'native', 'test', 'bench', 'demo', 'examples', 'scripts', 'cli/src', 'cli/test'],
  'service/src',
]

function filesIn(path: string): string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path]
  return readdirSync(join(root, path))
    .filter((name) => name !== 'node_modules')
    .flatMap((name) => filesIn(`${path}/${name}`))
}

/** What a text names: a script of npm, or a command of `npm run dev`. Lines may break, also in a comment. */
function commandsIn(text: string): { scripts: string[]; commands: string[] } {
  const flat = text.replace(/\n[ \t]*(?:\/\/|\*|#)?[ \t]*/g, ' ')
  const named = [...flat.matchAll(/\bnpm run ([a-z]\w*(?:[:-]\w+)*)(?: -- ([a-z]\w*(?:[:-]\w+)*))?/g)]
  return {
    scripts: named.map(([, script]) => script!),
    commands: named.flatMap(([, script, command]) =>
      script === 'dev' && command !== undefined ? [command] : [],
    ),
  }
}

test('each command that a text of the package names exists', () => {
  const files = PLACES.flatMap(filesIn).filter((file) => !/^test.package.(commands|docs).test.ts$/.test(file))
  const found = new Set<string>()
  for (const file of files) {
    const named = commandsIn(readText(file))
    for (const script of named.scripts) assert.ok(script in scripts, `${file}: ${script}`)
    for (const command of named.commands) assert.ok(command in COMMANDS, `${file}: npm run dev -- ${command}`)
    for (const command of named.commands) found.add(command)
  }
  assert.ok(found.size > 20, `${found.size} found`)
})

test('a command is found also where a line breaks', () => {
  assert.equal(
    commandsIn('a `npm run\nlint`, `npm run dev --\n  soak --minutes 1`, npm run bench -- --quick'),
    {
      scripts: ['lint', 'dev', 'bench'],
      commands: ['soak'],
    },
  )
  assert.equal(commandsIn('// npm run dev\n// -- stress:addon-workers').commands, ['stress:addon-workers'])
})

test('each command of `npm run dev` has its row in CONTRIBUTING.md', () => {
  const text = readText('CONTRIBUTING.md')
  for (const name of Object.keys(COMMANDS)) {
    const row = new RegExp(`^\\| \`npm run (?:dev -- )?${name}[ \`]`, 'm')
    assert.match(text, row, name)
  }
})

test('package.json has room', () => {
  const lines = readText('package.json').trimEnd().split('\n').length
  assert.ok(lines < MOST_LINES, `${lines} lines`)
})

test.run()
