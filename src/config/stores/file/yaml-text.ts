// Policies in YAML, by the package `yaml`, which keeps comments when a policy changes.
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { loadPackage } from '../../../core/packages.js'
import type { PolicyDocument } from '../../policy.js'
import { type ParsedText, TextFault, type TextFormat } from './text-format.js'

type Entry = Yaml.Pair<Yaml.Node, Yaml.Node>

/** By a name of its own: the build would take it for a package that each program with files needs. */
const YAML = 'yaml'

/** @throws MillraceError `ERR_MILLRACE_MISSING_PEER` if the package `yaml` is not installed */
export function yamlText(): TextFormat {
  const yaml = loadYaml()
  return {
    name: 'YAML',

    parse(text: string): ParsedText {
      const { document, entries } = read(yaml, text)
      const documents = new Map([...entries].map(([key, { value }]) => [key, plainOf(document, value)]))
      const placeOf = (key: string, names: readonly string[]) => {
        let place = startOf(entries.get(key)?.key)
        let node: unknown = entries.get(key)?.value
        for (const name of names) {
          const pair =
            yaml.isMap<Yaml.Node, Yaml.Node>(node) && node.items.find((each) => nameOf(each) === name)
          const next = pair ? pair.key : yaml.isSeq(node) ? node.items[Number(name)] : undefined
          if (next === undefined) break
          place = startOf(next as Yaml.Node)
          node = pair ? pair.value : next
        }
        return place
      }
      return { documents, placeOf }
    },

    edit(text: string, changes: ReadonlyMap<string, PolicyDocument | undefined>): string {
      const { document, entries, root } = read(yaml, text)
      for (const [key, next] of changes) {
        const entry = entries.get(key)
        if (entry !== undefined) freeAliases(yaml, document, entry)
        if (next === undefined) root.items = root.items.filter((each) => each !== entry)
        else if (entry === undefined) root.items.push(document.createPair(quoted(yaml, key), next) as Entry)
        else entry.value = changed(yaml, document, entry.value, next)
      }
      return document.toString({ lineWidth: 0 })
    },
  }
}

const loadYaml = (): typeof Yaml => loadPackage(YAML, () => createRequire(import.meta.url)(YAML))

function read(yaml: typeof Yaml, text: string) {
  // The package compares each key with all others; `entriesOf` does so by a set.
  const document = yaml.parseDocument<Yaml.Node>(text, { uniqueKeys: false, prettyErrors: false })
  const [error] = document.errors
  if (error !== undefined) throw new TextFault(error.pos[0], error.code, `YAML (${error.message})`)
  const root = document.contents
  if (!yaml.isMap<Yaml.Node, Yaml.Node>(root)) {
    const found = root === null ? 'an empty file' : 'something else'
    throw new TextFault(startOf(root), found, 'a map of policies by their keys; {} if there are none')
  }
  yaml.visit(root, { Map: (_, map) => void entriesOf(map as Yaml.YAMLMap<Yaml.Node, Yaml.Node>) })
  return { document, root, entries: entriesOf(root) }
}

function entriesOf(map: Yaml.YAMLMap<Yaml.Node, Yaml.Node>): Map<string, Entry> {
  const entries = new Map<string, Entry>()
  for (const pair of map.items) {
    const name = nameOf(pair)
    if (entries.has(name)) throw new TextFault(startOf(pair.key), name, 'each name only once')
    entries.set(name, pair)
  }
  return entries
}

/** A key as it is written: `241531` and `0x10` are numbers to YAML. */
function nameOf({ key }: { readonly key: unknown }): string {
  const { value, source } = Object(key) as { value?: unknown; source?: string }
  if (typeof value === 'string') return value
  if (source !== undefined && source !== '') return source
  throw new TextFault(startOf(key), 'something else', 'a string as the name')
}

function startOf(node: unknown): number {
  return (node as Yaml.Node | null | undefined)?.range?.[0] ?? 0
}

function plainOf(document: Yaml.Document, value: Yaml.Node | null | undefined): unknown {
  try {
    return value ? value.toJS(document) : null
  } catch (error) {
    throw new TextFault(startOf(value), 'an alias', `YAML (${(error as Error).message})`)
  }
}

/** What others have by an alias of this entry, they get as their own. */
function freeAliases(yaml: typeof Yaml, document: Yaml.Document, entry: Entry): void {
  const anchors = new Set<string>()
  const note = (_: unknown, node: Yaml.Node) => {
    const { anchor } = node as { anchor?: string }
    if (anchor !== undefined) anchors.add(anchor)
  }
  if (entry.value) yaml.visit(entry.value, { Node: note })
  if (anchors.size === 0) return
  yaml.visit(document, {
    Alias: (_, alias) =>
      anchors.has(alias.source) ? document.createNode(alias.toJS(document) as unknown) : undefined,
  })
}

/** The value as a node, made from the one before, of which it keeps the comments and what stays the same. */
function changed(yaml: typeof Yaml, document: Yaml.Document, before: unknown, value: unknown): Yaml.Node {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (yaml.isMap<Yaml.Node, Yaml.Node>(before) && isMap) {
    const next = value as Record<string, unknown>
    const entries = entriesOf(before)
    before.items = before.items.filter((pair) => Object.hasOwn(next, nameOf(pair)))
    for (const [name, each] of Object.entries(next)) {
      const entry = entries.get(name)
      if (entry === undefined) before.items.push(document.createPair(name, each) as Entry)
      else entry.value = changed(yaml, document, entry.value, each)
    }
    return before
  }
  const node = document.createNode(value) as Yaml.Node
  const { comment, commentBefore } = Object(before) as Yaml.Node
  if (comment) node.comment = comment
  if (commentBefore) node.commentBefore = commentBefore
  return node
}

function quoted(yaml: typeof Yaml, key: string): Yaml.Scalar {
  const scalar = new yaml.Scalar(key)
  scalar.type = 'QUOTE_DOUBLE'
  return scalar
}
