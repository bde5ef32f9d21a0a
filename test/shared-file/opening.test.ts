// A file that another process has locked: opening waits for a bounded time.
// run: addon, modules
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createLimiter, openLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { neededAddon } from '#millrace/native/addon.js'
import { type Opening, openWithRetries } from '#millrace/shared-file/open-retries.js'
import { assertRaises, assertRejects, resolved, settled } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { root } from '../package/root.js'
import { folder } from './processes.js'

const at = folder()
const options = (file: string) => ({ limit: 3, window: '1h' as const, maxKeys: 100, shared: { file } })

/**
 * Locks a file like a process that is opening it. Locks belong to descriptors, so this process can be the
 * other one.
 */
async function busyFile(name: string): Promise<{ file: string; letGo(): void }> {
  const file = at(name)
  await createLimiter(options(file)).close()
  const fd = openSync(file, 'r+')
  assert.is(neededAddon('test', '').files!.lock(fd, true), 'alone')
  return { file, letGo: () => closeSync(fd) }
}

/** The total timeout in milliseconds with which `act` blocks its thread, not the time that passes. */
function blockingMs(act: () => void): number {
  const { wait } = Atomics
  let sum = 0
  Atomics.wait = ((...args: [Int32Array, number, number, number?]) => {
    sum += args[3] ?? Number.POSITIVE_INFINITY
    return wait(...args)
  }) as typeof wait
  try {
    act()
  } finally {
    Atomics.wait = wait
  }
  return sum
}

const descriptors = () => (existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0)

test('createLimiter blocks for at most a tenth of a second; the error says that the file is busy and names openLimiter', async () => {
  const { file, letGo } = await busyFile('now')
  const before = descriptors()
  const act = () => createLimiter(options(file))
  const blockedMs = blockingMs(() => {
    const { message } = assertRaises(act, 'ERR_MILLRACE_SHARED_BUSY', 'shared.file', file)
    assert.match(message, /openLimiter/)
  })
  assert.ok(blockedMs > 50 && blockedMs <= 100, `blocked for ${blockedMs} ms`)
  assert.is(descriptors(), before)
  letGo()
  await createLimiter(options(file)).close()
})

for (const engine of ['inline', 'pool'] as const) {
  test(`openLimiter waits until the file is free without blocking the event loop (${engine})`, async () => {
    const { file, letGo } = await busyFile(`patient ${engine}`)
    const limiter =
      engine === 'pool'
        ? openLimiter({ ...options(file), engine })
        : openLimiter({ ...options(file), engine })
    let turns = 0
    const counting = setInterval(() => {
      if (++turns === 3) letGo()
    })
    const opened = await limiter
    clearInterval(counting)
    assert.ok(turns >= 3)
    assert.ok((await opened.check('key')).allowed)
    await opened.close()
  })
}

test('openLimiter stops waiting when its signal aborts, and rejects with the reason', async () => {
  const { file, letGo } = await busyFile('aborted')
  const before = descriptors()
  const controller = new AbortController()
  const opening = openLimiter(options(file), { signal: controller.signal })
  controller.abort('enough')
  const outcome = await settled(opening)
  assert.equal(outcome, { status: 'rejected', reason: 'enough' })
  assert.is(descriptors(), before)
  letGo()
  const aborted = { signal: AbortSignal.abort('before') }
  assert.is(
    ((await settled(openLimiter(options(at('none')), aborted))) as PromiseRejectedResult).reason,
    'before',
  )
  assert.not(existsSync(at('none')))
})

test('openLimiter has a timeout too, after which the file is closed', async () => {
  let isClosed = false
  function* never(): Opening<void> {
    try {
      for (;;) yield
    } finally {
      isClosed = true
    }
  }
  const act = () => openWithRetries('/a/file', never(), undefined, 0)
  await assertRejects(act, 'ERR_MILLRACE_SHARED_BUSY', 'shared.file')
  assert.ok(isClosed)
})

test('openLimiter resolves with the limiter of createLimiter, also without a file, and rejects with its errors', async () => {
  const inMemory = await resolved(openLimiter({ limit: 3, window: '1h' }))
  assert.is(inMemory.check('key').remaining, 2)
  await assertRejects(() => openLimiter({ limit: 0, window: '1h' }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
  const odd = { timeout: 5 } as never
  await assertRejects(() => openLimiter(options(at('odd')), odd), 'ERR_MILLRACE_INVALID_OPTION', 'opening')
  const signal = 'no signal' as never
  await assertRejects(
    () => openLimiter(options(at('odd')), { signal }),
    'ERR_MILLRACE_INVALID_OPTION',
    'signal',
  )
  const nowhere = options(at('no/such/folder'))
  await assertRejects(() => openLimiter(nowhere), 'ERR_MILLRACE_SHARED_FILE', 'shared.file')
})

test('the error for too many open files is the same at every step', () => {
  const code = `import('millrace').then(({ createLimiter }) => {
    const { openSync, closeSync } = require('node:fs')
    const file = ${JSON.stringify(at('many'))}
    createLimiter({ limit: 1, window: '1m', maxKeys: 10, shared: { file } })
    const taken = []
    try { for (;;) taken.push(openSync('/dev/null')) } catch {}
    for (let free = 0; free < 6; free++) {
      try {
        const limiter = createLimiter({ limit: 1, window: '1m', maxKeys: 10, shared: { file } })
        limiter.close()
        console.log(free, 'opened')
      } catch (error) { console.log(free, error.code, error.message) }
      closeSync(taken.pop())
    }
  })`
  const script = 'ulimit -n 60; exec "$0" "$@"'
  const { stdout, stderr } = spawnSync('sh', ['-c', script, process.execPath, '-e', code], {
    encoding: 'utf8',
    cwd: join(root, 'build'), // where the package is these modules
  })
  const lines = stdout.trim().split('\n')
  assert.is(lines.length, 6, stderr)
  assert.match(lines[0]!, /EMFILE/)
  assert.match(lines.at(-1)!, /opened/)
  for (const line of lines.filter((each) => !each.endsWith('opened'))) {
    assert.match(line, /ERR_MILLRACE_SHARED_FILE .*this process has reached its limit \(EMFILE\)/)
  }
})

test.run()
