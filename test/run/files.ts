import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What a test file says of itself in a line of its own, `// run: alone, also-full`:
 *
 *     alone       it needs all processors, or measures: no other file runs beside it
 *     first       it takes long: it starts before the others
 *     full        it takes longer than the quick tests may: only `npm run test:full` runs it
 *     also-full   `npm run test:full` runs it again, with MILLRACE_TESTS=full (`test/size.ts`)
 *     addon       it tests what only the addon does
 *     typescript  the addon makes no difference to it
 */
export const MARKS = ['alone', 'first', 'full', 'also-full', 'addon', 'typescript'] as const
export type Mark = (typeof MARKS)[number]

export interface TestFile {
  /** Its path below `test/`, or, in a workspace, the folder of the workspace and its path below `test/` there. */
  readonly name: string
  readonly path: string
  readonly marks: ReadonlySet<Mark>
}

const ENDING = '.test.js'

/** Every test file of a built package and of its workspaces. */
export function testFiles(root: string): TestFile[] {
  const folders = [['', root], ...workspacesOf(root).map((name) => [`${name}/`, join(root, name)])]
  return folders
    .flatMap(([prefix, folder]) => filesIn(prefix!, join(folder!, 'build')))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Their folders. Globs are not understood. */
function workspacesOf(root: string): string[] {
  const manifest: { workspaces?: string[] } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return manifest.workspaces?.filter((folder) => folder !== '.') ?? []
}

function filesIn(prefix: string, folder: string): TestFile[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ENDING))
    .map((file) => {
      const path = join(folder, file)
      const name = `${prefix}${file.replaceAll('\\', '/').replace(/^test\//, '')}`
      return { name: name.slice(0, -ENDING.length), path, marks: marksIn(path) }
    })
}

/** @throws Error for a mark that does not exist */
function marksIn(path: string): ReadonlySet<Mark> {
  const [, list] = /^\/\/ run: (.*)$/m.exec(readFileSync(path, 'utf8')) ?? []
  const marks = list?.split(', ') ?? []
  for (const mark of marks) {
    if (!MARKS.includes(mark as Mark)) throw new Error(`${path}: no mark is called '${mark}'`)
  }
  return new Set(marks as Mark[])
}
