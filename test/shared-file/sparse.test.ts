// A sparse copy of a file has its counts, but no disk space for its zeros.
// run: addon
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, statSync, truncateSync, writeSync } from 'node:fs'
import { createLimiter } from 'millrace'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()
const RULE = { limit: 10, window: '1h', maxKeys: 10_000 } as const

/** Copies only bytes that are not zero, like `cp --sparse=always`. */
function copySparse(from: string, to: string): void {
  const bytes = readFileSync(from)
  const fd = openSync(to, 'w', 0o600)
  for (let block = 0; block < bytes.length; block += 4_096) {
    const part = bytes.subarray(block, block + 4_096)
    if (part.some((byte) => byte !== 0)) writeSync(fd, part, 0, part.length, block)
  }
  closeSync(fd)
  truncateSync(to, bytes.length)
}

const taken = (file: string) => statSync(file).blocks * 512

async function sparse(name: string): Promise<string> {
  const whole = createLimiter({ ...RULE, shared: { file: at(`${name} whole`) } })
  whole.check('key', 6)
  await whole.close()
  copySparse(at(`${name} whole`), at(name))
  assert.ok(taken(at(name)) < statSync(at(name)).size / 4, 'the copy has holes')
  return at(name)
}

test('opening a sparse copy allocates all its space and keeps its counts', async () => {
  const file = await sparse('copy')
  const limiter = createLimiter({ ...RULE, shared: { file } })
  assert.ok(taken(file) >= statSync(file).size)
  assert.is(limiter.usage('key'), 6)
  await limiter.close()
})

/**
 * Opens the copy on a file system without space for all of it, and decides on as many keys as fit in the
 * table.
 */
const ON_A_FULL_DISK = `
  set -e
  mount -t tmpfs -o size=1m,mode=700 none "$1"
  cp --sparse=always "$2" "$1/copy"
  chmod 600 "$1/copy"
  "$3" -e "$4" "$1/copy"`
const OPENER = `
  import('millrace').then(({ createLimiter }) => {
    try {
      const limiter = createLimiter({ limit: 10, window: '1h', maxKeys: 10_000, shared: { file: process.argv[1] } })
      for (let i = 0; i < 10_000; i++) limiter.check('key ' + i)
      console.log('decided')
    } catch (error) { console.log(error.code, error.message) }
  })`
const canMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0
const whereMounting = canMount ? test : any.skip
whereMounting('a sparse copy on a full disk is refused by name, and ends no process', async () => {
  const file = await sparse('full')
  mkdirSync(at('disk'))
  const args = ['-rm', 'sh', '-c', ON_A_FULL_DISK, 'sh', at('disk'), file, process.execPath, OPENER]
  const { stdout, stderr, status } = spawnSync('unshare', args, { encoding: 'utf8' })
  assert.is(status, 0, stderr)
  assert.match(stdout, /^ERR_MILLRACE_SHARED_FILE .*room for all of its \d+ bytes.*holes.*ENOSPC/)
})

test.run()
