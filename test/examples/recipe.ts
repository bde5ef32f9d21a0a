// The recipes of pages, each as a module that runs beside modules of its user.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as assert from 'uvu/assert'
import { readText, root } from '../package/root.js'

const SOCKETS_AND_CALLS = 'docs/how-to/sockets-and-calls.md'
const MOST_LINES = 15
/** The port of the page; a test has a free one. */
const PORT = '8080'

/** The code below a heading. It has at most 15 lines. */
function recipe(heading: string, page: string): string {
  const [, section = ''] =
    new RegExp(`^## ${heading}\\n([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, 'm').exec(readText(page)) ?? []
  const [, code = ''] = /^```js\n([\s\S]*?)^```/m.exec(section) ?? []
  assert.ok(code, `no code below ${heading}`)
  const { length } = code.trimEnd().split('\n')
  assert.ok(length <= MOST_LINES, `${heading} has ${length} lines`)
  return code
}

/** Runs the recipe below a heading on a free port, with modules beside it, and returns its variables of these names. */
export async function runRecipe<Name extends string>(
  heading: string,
  names: readonly Name[],
  modules: Readonly<Record<string, string>> = {},
  page = SOCKETS_AND_CALLS,
  // biome-ignore lint/suspicious/noExplicitAny: values of several packages
): Promise<Record<Name, any>> {
  mkdirSync(join(root, 'build'), { recursive: true })
  const folder = mkdtempSync(join(root, 'build/recipe-'))
  try {
    for (const [name, code] of Object.entries(modules)) writeFileSync(join(folder, name), code)
    const code = recipe(heading, page).replace(PORT, '0')
    writeFileSync(join(folder, 'recipe.js'), `${code}export { ${names.join(', ')} }\n`)
    return await import(pathToFileURL(join(folder, 'recipe.js')).href)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
