// Which file of dist/ a module is bundled into. A module that one file needs is part of that file. What several need is
// in a chunk: `core` has what `millrace` itself loads at once, `later` what several of the parts need that the first
// limiter loads, `setup` what only the creation of some limiters needs, the others what the entries of one kind share.
import { posix } from 'node:path'
import { creationLoads, lazyLoads } from './commonjs.mjs'

const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g

/** By the first folder of a module that `millrace` itself does not need. All others are in `core`. */
const CHUNKS = {
  core: 'core', // also what packages are provided by
  http: 'http',
  fetch: 'fetch',
  compat: 'compat',
  config: 'config',
  redis: 'redis',
  remote: 'remote',
  values: 'remote',
  memcached: 'remote',
  backend: 'remote',
  client: 'remote',
}

/** Returns a function from a module to the name of its chunk; undefined if it has none, or is of another package. */
export function chunkOf(codes, entries) {
  const lazy = [...codes].flatMap(([file, code]) => pathsFrom(file, lazyLoads(code)))
  const forCreation = new Set([...codes].flatMap(([file, code]) => pathsFrom(file, creationLoads(code))))
  const inUse = lazy.filter((file) => !forCreation.has(file))
  const roots = new Set([...entries, ...lazy])
  const rootsBy = new Map([...codes.keys()].map((file) => [file, new Set()]))
  for (const root of roots) {
    for (const file of reachable(root, codes, importsOf)) rootsBy.get(file).add(root)
  }
  return (file) => {
    const by = rootsBy.get(file)
    // What is loaded at first use, but also imported by others that are, is where they find it: chunks have no circles.
    if (by === undefined || entries.includes(file) || by.size === 1) return undefined
    if (by.has('index.js')) return 'core'
    return CHUNKS[file.split('/')[0]] ?? (inUse.some((root) => by.has(root)) ? 'later' : 'setup')
  }
}

/** A module and all that it leads to; by default also what is loaded at first use. */
export function reachable(file, codes, next = allFrom, found = new Set()) {
  if (found.has(file)) return found
  found.add(file)
  for (const other of next(codes.get(file), file)) reachable(other, codes, next, found)
  return found
}

const allFrom = (code, file) => [...importsOf(code, file), ...pathsFrom(file, lazyLoads(code))]

/** The modules of this package that code imports, or whose types it does. */
export function importsOf(code, file) {
  return pathsFrom(
    file,
    Array.from(code.matchAll(IMPORT), ([, source]) => source),
  )
}

const pathsFrom = (file, sources) =>
  sources.filter((source) => source.startsWith('.')).map((source) => posix.join(posix.dirname(file), source))
