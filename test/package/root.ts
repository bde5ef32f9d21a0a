import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The package's own folder; this file runs as build/test/package/root.js. */
export const root = fileURLToPath(new URL('../../../', import.meta.url))

export function readText(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** Every TypeScript file of `folder`, by its path within it, but for those of packages that it has installed. */
export function sourcesIn(folder: string): string[] {
  const within = (path: string): string[] =>
    readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) => {
      const file = `${path}/${entry.name}`
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : within(file)
      return /\.c?ts$/.test(file) ? [file.slice(folder.length + 1)] : []
    })
  return within(folder).sort()
}

/** TypeScript without its comments; strings stay. */
export function withoutComments(source: string): string {
  const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g
  return source.replace(token, (found) => (found.startsWith('/') ? ' ' : found))
}

/** The specifiers that a module imports, re-exports, loads by import() or starts as a worker. */
export function importsOf(source: string): string[] {
  const bare = withoutComments(source)
  const forms = [
    /\b(?:import|export)\b[^'"`;()]*?\bfrom\s*['"]([^'"]+)['"]/g,
    /(?<!['"])\bimport\s*['"]([^'"]+)['"]/g, // not the text 'import'
    /\b(?:import|require|resolve)\(\s*['"]([^'"]+)['"]/g,
    /\bnew URL\(\s*['"](\.[^'"]*\.[jt]s)['"]\s*,\s*import\.meta\.url/g,
  ]
  return forms.flatMap((form) => [...bare.matchAll(form)].map(([, specifier]) => specifier!))
}
