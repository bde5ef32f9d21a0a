// The pages of the API reference: their modules, names, tables and the index.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ENTRIES } from '../scripts/entries.mjs'

/** Below the package, so that TypeDoc takes what src/ does not export for ours, and reports it. */
const MODULES = fileURLToPath(new URL('../.cache/reference/', import.meta.url))

/** Links between pages, as TypeDoc writes them. */
export const LINK = /\]\((millrace(?:\.[\w-]+)*\.md|index\.md)(#[^)]*)?\)/g
/** The kind that TypeDoc puts before a name: `millrace.redis.Interface.RedisOptions.md`. */
const KIND = /(^|\.)(?:Class|Function|Interface)\./
const PROPERTIES = /^## Properties\n\n([\s\S]*?)(?=^## |(?![\s\S]))/m
const PROPERTY = /^### (\w+)(\?)?\n\n```ts\n([\s\S]*?)```\n+([\s\S]*?)(?=^### |^\*\*\*$|(?![\s\S]))/gm

/** Writes a module for each entry of the package, with the name that users import. The main one comes first. */
export function writeModules() {
  rmSync(MODULES, { recursive: true, force: true })
  mkdirSync(MODULES, { recursive: true })
  const entries = [['', 'index'], ...Object.entries(ENTRIES).filter(([name]) => name !== 'internal')]
  return entries.map(([name, source]) => {
    const module = name === '' ? 'millrace' : `millrace/${name}`
    const file = join(MODULES, `${module.replaceAll('/', '-')}.ts`)
    writeFileSync(file, `/** @module ${module} */\nexport * from '../../src/${source}.js'\n`)
    return file
  })
}

/** `Limiter.md` of `millrace`, `redis.RedisOptions.md` of `millrace/redis`, and `redis.md` for that module. */
export function pageOf(file) {
  const page = file.replace(KIND, '$1')
  return page === 'millrace.md' ? page : page.replace(/^millrace\./, '')
}

/** The index, with the names of each module. */
export function indexOf(index, texts) {
  return index.replace(/^- \[(.*)\]\((.*)\)$/gm, (_, module, page) => {
    const file = page === 'millrace.md' ? page : `millrace.${page}`
    const text = texts.get(file)
    const own = Array.from(text.matchAll(/^- \[(\w+)\]\((.*)\)$/gm), ([, name, to]) => [name, pageOf(to)])
    const shown = Array.from(text.matchAll(/^### (\w+)(\(\))?$/gm), ([, name]) => [
      name,
      `${page}#${name.toLowerCase()}`,
    ])
    const links = [...own, ...shown].map(([name, to]) => `- [${name}](${to})`)
    return `### [${module}](${page})\n\n${links.join('\n')}\n`
  })
}

/** A page of options or fields, with a table of them before. */
export function withTable(text) {
  const properties = [...(PROPERTIES.exec(text)?.[1] ?? '').matchAll(PROPERTY)]
  if (properties.length < 2) return text
  const rows = properties.map(([, name, optional, code, rest]) => {
    const required = optional === undefined ? 'required' : (defaultOf(rest) ?? '')
    return `| [\`${name}\`](#${name.toLowerCase()}) | ${cell(typeOf(code, name))} | ${required} | ${firstSentence(rest)} |`
  })
  const table = ['| name | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
  return text.replace(/^## Properties$/m, `## All at a glance\n\n${table}\n\n## Properties`)
}

/** The type in the code of a property: `name?: type;`, on one line. */
function typeOf(code, name) {
  const [, type] = new RegExp(`^(?:readonly )?(?:optional )?${name}\\??: ([\\s\\S]*);\\s*$`).exec(code) ?? []
  if (type === undefined) return undefined
  const line = type.replace(/\s+/g, ' ').replace(/^ ?\| /, '')
  return line.length > 60 ? `${line.slice(0, 57)}...` : line
}

/** TypeDoc shows each default as code, also one in words. */
const CODE = /^(?:\S+|'[^']*'|\[.*\]|\{.*\})$/

/** The code of the default, or its text. */
function defaultOf(text) {
  const [, code, prose] = /^\*\*Default\*\*\n\n(?:```ts\n([^`]*)\n```|([^\n]+))/m.exec(text) ?? []
  return code === undefined || !CODE.test(code) ? (code ?? prose) && escaped(code ?? prose) : cell(code)
}

function firstSentence(text) {
  const [paragraph] = text.split(/\n\n|\n- /)
  if (/^\*\*|^```/.test(paragraph)) return ''
  const [sentence] = /^(?:`[^`]*`|[^`])*?[.:](?=\s|$)/.exec(paragraph) ?? [paragraph]
  return escaped(sentence.replace(/\s+/g, ' ').replace(/:$/, '.'))
}

const cell = (code) => (code === undefined ? '' : `\`${escaped(code.replace(/\s+/g, ' ').trim())}\``)
const escaped = (text) => text.replaceAll('|', '\\|')
