import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.js'

const LEFT_OUT = new Set(['node_modules', 'dist', 'esm', 'build', '.git', '.cache', 'prebuilds'])

/** Every Markdown file of the repository, by its path from the root. */
export function markdownFiles(folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : markdownFiles(path)
      return path.endsWith('.md') ? [path] : []
    })
    .sort()
}

/** Markdown without code: neither fenced blocks nor spans. Lines keep their numbers. */
export function withoutCode(text: string): string {
  return text
    .replace(/^( *)(```+)[\s\S]*?^ *\2 *$/gm, (block) => block.replace(/[^\n]/g, ''))
    .replace(/`[^`\n]*`/g, '')
}

/** Where the links and images lead, in their order. */
export function linksOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)/g)].map(
    ([, link]) => link!,
  )
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  const uncoded = text.replace(/^( *)(```+)[\s\S]*?^ *\2 *$/gm, '')
  for (const [, heading] of uncoded.matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = slugOf(heading!)
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}

function slugOf(heading: string): string {
  const shown = heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
  return shown
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}
