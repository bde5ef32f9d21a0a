import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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

/** Acts in a folder with these files. */
export async function inFolder(
  files: Readonly<Record<string, string>>,
  act: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder()
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(folder.path(name), text)
    await act(folder.path('.'))
  } finally {
    folder.remove()
  }
}
