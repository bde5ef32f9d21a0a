// Files of policies for tests: each in a folder of its own.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileConfig } from 'millrace/config/file'
import type { ConfigChange, SyncConfigStore } from '#millrace/config/config-store.js'

export interface FilePlace {
  readonly folder: string
  readonly path: string
  write(text: string): void
  text(): string
  open(): SyncConfigStore
  remove(): Promise<void>
}

export function filePlace(name = 'limits.json', text = '{}'): FilePlace {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'))
  const path = join(folder, name)
  const write = (text: string) => writeFileSync(path, text)
  write(text)
  return {
    folder,
    path,
    write,
    text: () => readFileSync(path, 'utf8'),
    open: () => fileConfig({ path }),
    remove: async () => rmSync(folder, { recursive: true }),
  }
}

/** A store, and what it tells. */
export async function withFile(
  text: string,
  act: (store: SyncConfigStore, place: FilePlace, told: ConfigChange[]) => Promise<void>,
  name?: string,
): Promise<void> {
  const place = filePlace(name, text)
  const store = place.open()
  const told: ConfigChange[] = []
  store.watch((change) => void told.push(change))
  try {
    await act(store, place, told)
  } finally {
    await store.close()
    await place.remove()
  }
}
