// Every mutation of the built code of `memory/` and `algorithms/`.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AnyNode, parse } from 'acorn'
import { fullAncestor } from 'acorn-walk'
import { type Change, changesOf } from './operators.js'

const BUILT = fileURLToPath(new URL('../../../esm/', import.meta.url))
const FOLDERS = ['algorithms', 'memory', 'range-sum']
/** One line a function, each an operation of the processor; the explorer has its own in their place. */
const LEFT_OUT = new Set(['memory/words.js'])

export interface Mutation extends Change {
  /** Below `esm`. */
  readonly file: string
  /** The file's code with the mutation. */
  readonly code: () => string
  /** The file's code as it is. */
  readonly original: string
  /** What tells it apart for people, line numbers not being stable: `algorithms/ring.js #broom: if (p «> → >=» end)`. */
  readonly name: string
}

export async function allMutations(): Promise<Mutation[]> {
  const all: Mutation[] = []
  for (const folder of FOLDERS) {
    for (const name of (await readdir(join(BUILT, folder))).sort()) {
      const file = `${folder}/${name}`
      if (!name.endsWith('.js') || LEFT_OUT.has(file)) continue
      all.push(...mutationsOf(file, await readFile(join(BUILT, file), 'utf8')))
    }
  }
  return all
}

export function mutationsOf(file: string, code: string): Mutation[] {
  const found = new Map<string, Mutation>()
  fullAncestor(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), (node, _, nodes) => {
    const parents = nodes.slice(0, -1) as AnyNode[]
    for (const change of changesOf(node as AnyNode, parents, code)) {
      const { start, end, replacement } = change
      found.set(`${start} ${end} ${replacement}`, {
        ...change,
        file,
        original: code,
        code: () => code.slice(0, start) + replacement + code.slice(end),
        name: `${file} ${functionOf(parents, code)}: ${lineOf(change, code)}`,
      })
    }
  })
  return toldApart([...found.values()].sort((a, b) => a.start - b.start))
}

/** Lines that are alike in one function are counted. */
function toldApart(mutations: readonly Mutation[]): Mutation[] {
  const seen = new Map<string, number>()
  return mutations.map((mutation) => {
    const times = (seen.get(mutation.name) ?? 0) + 1
    seen.set(mutation.name, times)
    return times === 1 ? mutation : { ...mutation, name: `${mutation.name} (${times})` }
  })
}

function functionOf(parents: readonly AnyNode[], code: string): string {
  for (const node of parents.toReversed()) {
    if (node.type === 'MethodDefinition' || node.type === 'PropertyDefinition')
      return code.slice(node.key.start, node.key.end)
    if (node.type === 'FunctionDeclaration') return node.id?.name ?? 'default'
  }
  return 'outside'
}

/** The line (or lines) of the change, without what it says of itself. */
function lineOf({ start, end, replacement }: Change, code: string): string {
  const from = code.lastIndexOf('\n', start) + 1
  const to = code.indexOf('\n', end - 1)
  const change = `«${code.slice(start, end)} → ${replacement === ';' ? '' : replacement}»`
  return (code.slice(from, start) + change + code.slice(end, to < 0 ? code.length : to))
    .replace(/ \/\/ .*$/, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
