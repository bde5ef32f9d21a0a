import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { lmdbConfig } from 'millrace/config/lmdb'
import { test } from 'uvu'
import { testStore } from '../conformance/config-stores.js'

testStore(test, async () => {
  const path = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  return {
    open: () => lmdbConfig({ path, pollMs: 5 }),
    async plant(key, text) {
      const root = open({ path, overlappingSync: false })
      await root
        .openDB({ name: 'policies', keyEncoding: 'binary', encoding: 'string' })
        .put(Buffer.from(key), text)
      await root.close()
    },
    async remove() {
      rmSync(path, { recursive: true })
    },
  }
})
test.run()
