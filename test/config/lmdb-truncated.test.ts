// A file that was cut off is refused by name before LMDB maps it: a page beyond its end would end the process.
import { copyFileSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lmdbConfig } from 'millrace/config/lmdb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError } from '../limiter/support.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
test.after(() => rmSync(folder, { recursive: true }))
const policy = (limit: number) => ({ limit, window: '1m' })

test('a file that was cut off anywhere is refused, and whole files of any history are opened', async () => {
  const file = join(folder, 'whole.mdb')
  const store = lmdbConfig({ path: file })
  for (let round = 0; round < 12; round++) {
    for (let i = 0; i < 200; i += 50) {
      const keys = Array.from({ length: 50 }, (_, j) => round * 100 + i + j)
      await Promise.all(keys.map((key) => store.put(`key:${key}`, policy(i + 50))))
    }
    for (let i = 0; i < 20; i++) await store.delete(`key:${round * 100 + i * 5}`)
    const copy = join(folder, `copy-${round}.mdb`)
    copyFileSync(file, copy)
    const again = lmdbConfig({ path: copy })
    assert.equal((await again.get(`key:${round * 100 + 199}`))?.policy, policy(200))
    await again.close()
  }
  await store.close()
  const { size } = statSync(file)
  for (let left = size - 1; left > 0; left -= 1_777) {
    const cut = join(folder, 'cut.mdb')
    copyFileSync(file, cut)
    truncateSync(cut, left)
    try {
      lmdbConfig({ path: cut })
      assert.unreachable(`${left} of ${size} bytes`)
    } catch (error) {
      assertIsError(error, 'ERR_MILLRACE_CONFIG_STORE', 'path')
    }
  }
})

test.run()
