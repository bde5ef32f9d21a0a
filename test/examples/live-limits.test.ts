// run: full

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { assertRefused, countOf, example, withServers } from './program.js'

const command = fileURLToPath(new URL('../../../cli/dist/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-live-'))
const limits = join(folder, 'limits')
process.env.LIMITS = limits
test.after(() => rmSync(folder, { recursive: true }))

/** Runs `millrace config` in a process of its own, as an operator does. */
async function config(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...[command, 'config', ...args],
    ...['--store', `lmdb:${limits}`],
  ])
  return stdout
}

test('live-limits.mjs takes the limits that the command changes while it runs, and forgets nothing', async () => {
  await config('set', 'plan:free:*', '--limit', '5', '--window', '1h')
  await config('set', 'plan:pro:*', '--limit', '50', '--window', '1h')
  await withServers(example('live-limits.mjs'), 1, async ([address]) => {
    const asked = (key: string, count = 1) =>
      Promise.all(Array.from({ length: count }, () => fetch(address!, { headers: { 'x-api-key': key } })))
    const admits = async (key: string) => (await asked(key))[0]!.status === 200

    const first = await asked('free:ada', 7)
    assert.equal([countOf(first, 200), countOf(first, 429)], [5, 2])
    assertRefused(first.find(({ status }) => status === 429)!, 3_661)
    assert.is(countOf(await asked('pro:bob', 20), 200), 20)

    await config('set', 'plan:free:ada', '--limit', '8', '--window', '1h')
    await poll(() => admits('free:ada'), 'the raised limit')
    assert.is(countOf(await asked('free:ada', 5), 200), 2) // 8 less the 5 and the 1 before
    assert.is(countOf(await asked('free:eve', 9), 200), 5)

    await config('set', 'plan:pro:*', '--limit', '10', '--window', '1h')
    const policy = async () => (await asked('pro:bob'))[0]!.headers.get('RateLimit-Policy')
    await poll(async () => (await policy())!.includes('q=10;'), 'the lowered limit')
    assert.is(await admits('pro:bob'), false)
    assert.match(await config('get', 'plan:free:ada'), /has its own policy.*\n {2}8\/1h\n/)
  })
})

test.run()
