// run: also-full, also-long
// A file that was cut off is refused by name before LMDB maps it: a page beyond its end would end the process. A whole
// file is never refused, though LMDB may leave its last pages out, if they are free.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { open } from 'lmdb'
import { MillraceError } from 'millrace'
import { lmdbConfig } from 'millrace/config/lmdb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError } from '../limiter/support.js'
import { sized } from '../size.js'

const CHURN = fileURLToPath(new URL('./lmdb-churn.js', import.meta.url))
const KILLS = sized({ quick: 4, full: 30, long: 200 })
const PAGE_BYTES = 4096

const folder = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
test.after(() => rmSync(folder, { recursive: true }))
const policy = (limit: number) => ({ limit, window: '1m' })

/** How many bytes of the pages that a file had are not in it. */
function bytesLeftOut(file: string): number {
  const bytes = readFileSync(file)
  const metas = [0, PAGE_BYTES].map((at) => ({
    lastPage: Number(bytes.readBigUInt64LE(at + 144)),
    transaction: bytes.readBigUInt64LE(at + 152),
  }))
  const newest = metas[1]!.transaction > metas[0]!.transaction ? metas[1]! : metas[0]!
  return (newest.lastPage + 1) * PAGE_BYTES - bytes.length
}

/** Writes `count` policies, and as many other values that are taken back in their transaction. */
async function written(file: string, count: number): Promise<void> {
  const root = open({ path: file, noSubdir: true, overlappingSync: false, eventTurnBatching: false })
  const policies = root.openDB<string, string>({ name: 'policies', encoding: 'string' })
  for (let round = 0; round < 20; round++) {
    await root.childTransaction(() => {
      for (let i = 0; i < 100; i++) policies.put(`early:${i}`, 'x'.repeat(50))
    })
  }
  await root.childTransaction(() => {
    for (let i = 0; i < 100; i++) policies.remove(`early:${i}`)
    for (let i = 0; i < 2_000; i++) policies.put(`taken:${i}`, 'x'.repeat(100))
    for (let i = 0; i < 2_000; i++) policies.remove(`taken:${i}`)
  })
  await root.close()
  const store = lmdbConfig({ path: file })
  await Promise.all(Array.from({ length: count }, (_, i) => store.put(`key:${i}`, policy(i + 1))))
  await store.close()
}

/** Cuts a file at every `step` bytes. It is refused, or nothing that was in use is missing. */
async function assertCutsAreSeen(file: string, step: number): Promise<{ refused: number; opened: number }> {
  const counts = { refused: 0, opened: 0 }
  const whole = lmdbConfig({ path: file })
  const expected = await whole.list()
  await whole.close()
  const cut = join(folder, 'cut.mdb')
  for (let left = statSync(file).size - 1; left > 0; left -= step) {
    copyFileSync(file, cut)
    truncateSync(cut, left)
    try {
      const store = lmdbConfig({ path: cut })
      counts.opened++
      assert.equal(await store.list(), expected, `${left} bytes`)
      await store.close()
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      assertIsError(error, 'ERR_MILLRACE_CONFIG_STORE', 'path')
      counts.refused++
    }
    rmSync(cut)
    rmSync(`${cut}-lock`, { force: true })
  }
  return counts
}

test('a file that was cut off anywhere is refused, or lacks nothing that is in use', async () => {
  const file = join(folder, 'whole.mdb')
  const store = lmdbConfig({ path: file })
  for (let round = 0; round < 12; round++) {
    for (let i = 0; i < 200; i += 50) {
      const keys = Array.from({ length: 50 }, (_, j) => round * 100 + i + j)
      await Promise.all(keys.map((key) => store.put(`key:${key}`, policy(i + 50))))
    }
    for (let i = 0; i < 20; i++) await store.delete(`key:${round * 100 + i * 5}`)
  }
  await store.close()
  const { refused } = await assertCutsAreSeen(file, 1_777)
  assert.ok(refused > 50, `${refused} refusals`)
})

test('a whole file is opened whose last pages are free and were never written', async () => {
  const file = join(folder, 'short.mdb')
  await written(file, 0)
  assert.ok(bytesLeftOut(file) > 0, `${bytesLeftOut(file)} bytes`)
  const store = lmdbConfig({ path: file })
  await store.put('key', policy(7))
  await store.close()
  const { refused } = await assertCutsAreSeen(file, PAGE_BYTES)
  assert.ok(refused > 0)
})

test(`a file is opened while another process writes it, and after ${KILLS} of them were killed`, async () => {
  const path = join(folder, 'churned.mdb')
  const read = async (): Promise<void> => {
    const store = lmdbConfig({ path })
    assert.equal((await store.get('kept'))?.policy, policy(7))
    await store.close()
  }
  const store = lmdbConfig({ path })
  await store.put('kept', policy(7))
  await store.close()
  for (let kill = 0; kill < KILLS; kill++) {
    const writer = spawn(process.execPath, [CHURN, path, String(kill)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(writer, 'exit')
    let commits = 0
    for await (const _ of createInterface(writer.stdout)) {
      await read()
      if (++commits === 5) break
    }
    writer.kill('SIGKILL')
    await exit
    await read()
  }
})

test.run()
