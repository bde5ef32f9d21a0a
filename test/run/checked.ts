import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the sanitizers, parity and the random calls of the addon test. */
const FOLDERS = ['native', 'src/memory', 'src/algorithms', 'src/engines', 'src/native']
/**
 * A committed file with the hash of these folders at the last run in which all checks of the addon passed in full.
 * Only that run writes it: a hash written by hand leaves out checks that have never passed.
 */
const RECORD = '.ci/checked.json'

/** The hash of the names and contents of all files in these folders. */
export function contentHash(root: string): string {
  const hash = createHash('sha256')
  for (const folder of FOLDERS) {
    const files = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/'))
      .sort()
    for (const file of files) {
      const content = readFileSync(join(root, file))
      hash.update(`${file} ${content.length}\n`).update(content)
    }
  }
  return hash.digest('hex')
}

/** Whether all checks of the addon have passed on these very contents. */
export function isChecked(root: string, hash: string): boolean {
  const path = join(root, RECORD)
  return existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).hash === hash
}

/** Records that all checks of the addon have passed. `hash` is that of before they began. */
export function recordChecked(root: string, hash: string): void {
  writeFileSync(join(root, RECORD), `${JSON.stringify({ hash }, null, 2)}\n`)
}
