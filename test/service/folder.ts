import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of a test. */
export function temporaryFolder(): { path(name: string): string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-service-'))
  return {
    path: (name) => join(folder, name),
    remove: () => rmSync(folder, { recursive: true }),
  }
}
