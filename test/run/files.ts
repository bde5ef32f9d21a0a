import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Marks that a test file sets in a comment line such as `// run: alone, also-full`:
 *
 *     alone       runs while no other file runs, because it needs all processors or measures time
 *     own         has a process of its own, in a folder whose files share one (`plan.ts`): it changes the process
 *     first       starts before the other files, because it takes long
 *     full        runs only in `npm run test:full`, because it takes too long for the quick tests
 *     also-full   runs in `npm run test:full` too, with MILLRACE_TESTS=full (`test/size.ts`)
 *     long        runs only in `npm run test:long`: it takes more than a minute, or installs several versions
 *     also-long   runs in `npm run test:long` too, with MILLRACE_TESTS=long: all of what it has a share of
 *     addon       tests features that only the addon has
 *     typescript  runs once, because the addon makes no difference to it
 *     modules     runs on the modules of build/lib/, in a folder whose files run on dist/ (`plan.ts`): it tests one of them
 *     once        runs on one side in the quick tests, and on the other in the full tests
 */
export const MARKS = [
  'alone',
  'own',
  'first',
  'full',
  'also-full',
  'long',
  'also-long',
  'addon',
  'typescript',
  'modules',
  'once',
] as const
export type Mark = (typeof MARKS)[number]

export interface TestFile {
  /** The path below `test/`. In a workspace, the workspace's folder and the path below its `test/`. */
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

/** The folders of the workspaces; globs are not supported. */
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

/** @throws Error for an unknown mark */
function marksIn(path: string): ReadonlySet<Mark> {
  const [, list] = /^\/\/ run: (.*)$/m.exec(readFileSync(path, 'utf8')) ?? []
  const marks = list?.split(', ') ?? []
  for (const mark of marks) {
    if (!MARKS.includes(mark as Mark)) throw new Error(`${path}: unknown mark '${mark}'`)
  }
  return new Set(marks as Mark[])
}
