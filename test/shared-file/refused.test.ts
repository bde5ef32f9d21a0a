// run: also-full, modules
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { inspect } from 'node:util'
import { attachLimiter, createLimiter, type LimiterOptions, MillraceError, manualClock } from 'millrace'
import * as assert from 'uvu/assert'
import { HEADER, HEADER_WORDS, LAYOUT_VERSION } from '#millrace/memory/layout.js'
import { assertIsError, assertRaises } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { sized } from '../size.js'
import { folder } from './processes.js'

const at = folder()
const BASE = { limit: 10, window: '1m', maxKeys: 100 } as const
const open = (file: string, more: Partial<LimiterOptions> = {}) =>
  createLimiter({ ...BASE, shared: { file }, ...more })
const isRoot = process.geteuid?.() === 0

/** Creates a valid file that no process has open. */
async function made(name: string): Promise<string> {
  await open(at(name)).close()
  return at(name)
}

function assertRefused(file: string, what: RegExp): void {
  const { message } = assertRaises(() => open(file), 'ERR_MILLRACE_SHARED_FILE', 'shared.file', file)
  assert.match(message, what)
}

test('a symbolic link is refused, to a valid file and to a missing one', async () => {
  symlinkSync(await made('good'), at('link'))
  symlinkSync(at('nothing'), at('dangling'))
  assertRefused(at('link'), /symbolic link/)
  assertRefused(at('dangling'), /symbolic link/)
  assert.not(existsSync(at('nothing')))
})

test('a directory, a named pipe and a device are refused, without waiting for the pipe', () => {
  mkdirSync(at('directory'))
  execFileSync('mkfifo', ['-m', '600', at('pipe')])
  assertRefused(at('directory'), /regular file/)
  assertRefused(at('pipe'), /regular file/)
  assertRefused('/dev/null', /regular file/)
})

test('a missing folder, or a file in its place, is an error with the system’s code', () => {
  assertRefused(at('no/such/folder'), /ENOENT/)
  writeFileSync(at('plain'), '')
  assertRefused(at('plain/file'), /ENOTDIR/)
})

test('a file that others may write is refused, with its mode', async () => {
  const file = await made('writable')
  for (const mode of [0o620, 0o602, 0o666]) {
    chmodSync(file, mode)
    assertRefused(file, new RegExp(`only its owner may write .* 0${mode.toString(8)}`))
  }
  chmodSync(file, 0o600)
  await open(file).close()
})

const asRoot = isRoot ? test : test.skip
asRoot('a file of another user is refused', async () => {
  const file = await made('owned')
  chownSync(file, 65_534, 65_534)
  assertRefused(file, /belongs to 65534/)
})

test('an empty, a foreign and a truncated file are refused and not changed', async () => {
  const file = await made('whole')
  const whole = readFileSync(file)
  const text = Buffer.from('somebody’s notes\n'.repeat(100))
  for (const [name, bytes] of [
    ['empty', Buffer.alloc(0)],
    ['zeros', Buffer.alloc(65_536)],
    ['text', text],
    ['odd', whole.subarray(0, 1_001)],
    ['header alone', whole.subarray(0, 4 * HEADER_WORDS)],
    ['half', whole.subarray(0, whole.length / 2)],
    ['one word short', whole.subarray(0, -4)],
    ['one word long', Buffer.concat([whole, Buffer.alloc(4)])],
  ] as const) {
    writeFileSync(at(name), bytes, { mode: 0o600 })
    assertRefused(at(name), /arena of Millrace|bytes for its shape/)
    assert.ok(readFileSync(at(name)).equals(bytes), name)
  }
})

const VALUES = sized({ quick: [-1, 0x7fffffff], full: [0, 1, -1, 0x7ff00000, 0x7fffffff] })

test('with any damaged word of the header, the file is refused by name or its limits hold', async () => {
  const file = await made('damaged')
  const whole = readFileSync(file)
  let refusals = 0
  for (let word = 0; word < HEADER_WORDS; word++) {
    for (const value of VALUES) {
      const bytes = Buffer.from(whole)
      bytes.writeInt32LE(value, 4 * word)
      writeFileSync(file, bytes)
      try {
        const limiter = open(file)
        let admitted = 0
        for (let i = 0; i < 12; i++) if (limiter.check('key').allowed) admitted++
        assert.is(admitted, 10, `word ${word}: ${value}`)
        await limiter.close()
      } catch (error) {
        assert.instance(error, MillraceError, `word ${word}: ${value}: ${inspect(error)}`)
        assert.match((error as MillraceError).code, /SHARED_(FILE|MISMATCH)/)
        refusals++
      }
    }
  }
  assert.ok(refusals > 6 * VALUES.length, `${refusals} refusals`)
})

const ODD_TIMES = [Number.NaN, Infinity, -Infinity, 1e300, -1e300, 1e17, -1e17, 2 ** 53 - 1]
for (const name of ['CLOCK_OFFSET_MS', 'ORIGIN_MS', 'WALL_AHEAD_MS'] as const) {
  test(`a file with a damaged ${name} is refused by name, or its limits hold`, async () => {
    const file = await made(`damaged ${name}`)
    const whole = readFileSync(file)
    let refusals = 0
    for (const value of ODD_TIMES) {
      for (const isRestarted of [false, true]) {
        const bytes = Buffer.from(whole)
        bytes.writeDoubleLE(value, 4 * HEADER[name])
        if (isRestarted) bytes.writeInt32LE(7, 4 * HEADER.BOOT_ID)
        writeFileSync(file, bytes)
        let limiter: ReturnType<typeof open>
        try {
          limiter = open(file)
        } catch (error) {
          assertIsError(error, 'ERR_MILLRACE_SHARED_FILE', 'shared.file', `${value}`)
          assert.ok(readFileSync(file).equals(bytes), 'it is left as it is')
          refusals++
          continue
        }
        const admitted = Array.from({ length: 12 }, () => limiter.check('key').allowed)
        assert.is(admitted.filter(Boolean).length, 10, `${value}`)
        await limiter.close()
      }
    }
    assert.ok(refusals >= 2, `${refusals} refusals`)
  })
}

test('a mismatch lists all differences with both values; another limit is not a mismatch', async () => {
  const file = await made('shape')
  const cases: [Partial<LimiterOptions>, string, RegExp][] = [
    [{ window: '1h' }, 'window', /window 1m .*"window 1h"/],
    [
      { window: '1h', granularity: '10m' },
      'window, granularity',
      /window 1m, granularity 1s .*"window 1h, granularity 10m"/,
    ],
    [{ granularity: '10s' }, 'granularity', /granularity 1s .*"granularity 10s"/],
    [{ maxKeys: 5_000 }, 'maxKeys', /maxKeys 100 .*"maxKeys 5000"/],
    [{ edge: 'smooth' }, 'edge', /edge strict .*"edge smooth"/],
    [
      { algorithm: 'sliding-counter', granularity: undefined } as object,
      'granularity, algorithm, edge',
      /granularity 1s, algorithm sliding-window, edge strict .*"granularity 1m, algorithm sliding-counter, edge smooth"/,
    ],
    [{ onFull: 'deny' }, 'onFull', /onFull evict .*"onFull deny"/],
    [
      { countRefused: true, shadow: true },
      'countRefused, shadow',
      /countRefused false, shadow false .*"countRefused true, shadow true"/,
    ],
    [
      { edge: 'smooth', onFull: 'allow' },
      'edge, onFull',
      /edge strict, onFull evict .*"edge smooth, onFull allow"/,
    ],
  ]
  for (const [more, option, what] of cases) {
    const { message } = assertRaises(() => open(file, more), 'ERR_MILLRACE_SHARED_MISMATCH', option)
    assert.match(message, what)
    assert.ok(message.includes(file))
  }
  await open(file, { limit: 11 }).close()
})

test('a file of another period or time zone is a mismatch by name', async () => {
  const file = at('calendar')
  const monthly = {
    algorithm: 'fixed-window',
    align: 'calendar',
    period: 'month',
    timeZone: 'Asia/Tokyo',
  } as const
  const openBy = (more: Partial<LimiterOptions>) =>
    createLimiter({ limit: 10, maxKeys: 100, shared: { file }, ...monthly, ...more })
  await openBy({}).close()
  for (const [more, options, what] of [
    [{ timeZone: 'UTC' }, 'timeZone', /timeZone Asia\/Tokyo .*"timeZone UTC"/],
    [{ period: 'day' }, 'window, period', /period month .*period day"/],
  ] as const) {
    const { message } = assertRaises(() => openBy(more), 'ERR_MILLRACE_SHARED_MISMATCH', options)
    assert.match(message, what)
  }
  assert.is(openBy({ limit: 11 }).rule.timeZone, 'Asia/Tokyo')
})

test('countRefused and shadow hold for all who have a file open', async () => {
  const file = at('refusals')
  const limiter = open(file, { limit: 2, countRefused: true, shadow: true })
  const again = open(file, { limit: 2, countRefused: true, shadow: true })
  const attached = attachLimiter(limiter.share())
  for (const one of [limiter, again, attached]) {
    for (let i = 0; i < 3; i++) assert.ok(one.check('key').allowed)
    assert.is(one.peek('key').shadow!.allowed, false)
    await one.close()
  }
  const { shadowDenied } = open(file, { limit: 2, countRefused: true, shadow: true }).stats()
  assert.is(shadowDenied, 7)
})

test('a file of another layout is a mismatch that names both versions', async () => {
  const file = await made('version')
  const bytes = readFileSync(file)
  for (const version of [LAYOUT_VERSION - 1, 77]) {
    bytes.writeInt32LE(version, 4 * HEADER.VERSION)
    writeFileSync(file, bytes)
    const { message } = assertRaises(() => open(file), 'ERR_MILLRACE_SHARED_MISMATCH', 'layout version')
    assert.match(message, new RegExp(`layout version ${version} .*"layout version ${LAYOUT_VERSION}"`))
  }
})

test('a refused file is not kept locked', async () => {
  const file = await made('let go')
  assertRaises(() => open(file, { edge: 'smooth' }), 'ERR_MILLRACE_SHARED_MISMATCH', 'edge')
  const probe = `const { createRequire } = require('node:module')
    import('#millrace/native/addon.js').then(({ neededAddon }) => {
      const fd = require('node:fs').openSync(${JSON.stringify(file)}, 'r+')
      console.log(neededAddon('', '').files.lock(fd, true))
    })`
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', probe], { encoding: 'utf8' })
  assert.is(stdout, 'alone\n', stderr)
})

/**
 * The output of a process that opens the file under a limit of file size, in blocks of 512 bytes (1,024 in
 * some shells).
 */
function openingWithin(blocks: number, file: string) {
  const code = `import('millrace').then(({ createLimiter }) => {
    try {
      createLimiter({ limit: 1, window: '1m', maxKeys: 100_000, shared: { file: ${JSON.stringify(file)} } })
      console.log('opened')
    } catch (error) { console.log(error.code, error.message) }
  })`
  const script = `ulimit -f ${blocks}; exec "$0" "$@"`
  return spawnSync('sh', ['-c', script, process.execPath, '-e', code], { encoding: 'utf8' })
}

test('without space for the whole file, creating it is an error and leaves nothing', () => {
  const { stdout, signal, stderr } = openingWithin(1_000, at('no room'))
  assert.is(signal, null, stderr)
  assert.match(stdout, /^ERR_MILLRACE_SHARED_FILE .*room for its \d+ bytes/)
  assert.not(existsSync(at('no room')))
  assert.not(existsSync(at('no room.new')))
  assert.is(openingWithin(1_000_000, at('no room')).stdout, 'opened\n')
})

test('without the addon, shared is an error that says how to get it', () => {
  const code = `import('millrace').then(({ createLimiter }) => {
    createLimiter({ limit: 1, window: '1m' }).check('key')
    try {
      createLimiter({ limit: 1, window: '1m', shared: { file: ${JSON.stringify(at('none'))} } })
    } catch (error) { console.log(error.code, error.option, error.message) }
  })`
  const env = { ...process.env, MILLRACE_NATIVE: '0' }
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8', env })
  assert.match(stdout, /^ERR_MILLRACE_NO_ADDON shared\.file .*MILLRACE_NATIVE=0/, stderr)
  assert.not(existsSync(at('none')))
})

test('invalid values of shared are errors with their names', () => {
  for (const shared of [null, 5, 'path', true]) {
    const act = () => createLimiter({ ...BASE, shared: shared as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'shared', inspect(shared))
  }
  for (const file of [undefined, null, 5, '', 'a\0b', {}]) {
    const act = () => createLimiter({ ...BASE, shared: { file: file as never } })
    assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'shared.file', inspect(file))
  }
  const act = () => createLimiter({ ...BASE, shared: { file: at('x'), mode: 0o666 } as never })
  assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'shared')
})

test('a custom clock cannot be combined with a file, also when attaching', async () => {
  for (const clock of [manualClock(), { now: Date.now }]) {
    assertRaises(() => open(at('clocked'), { clock }), 'ERR_MILLRACE_INVALID_CLOCK', 'clock')
    assert.not(existsSync(at('clocked')))
  }
  const limiter = open(at('attached'))
  const clock = manualClock()
  assertRaises(() => attachLimiter(limiter.share(), { clock }), 'ERR_MILLRACE_INVALID_CLOCK', 'clock')
  for (const file of [null, 5, {}, { path: at('attached') }]) {
    const share = { ...limiter.share(), file: file as never }
    assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.file', inspect(file))
  }
  await limiter.close()
})

test('an unfinished file with foreign content is refused, not overwritten', () => {
  writeFileSync(at('target'), 'not ours')
  symlinkSync(at('target'), at('unfinished.new'))
  const before = readFileSync(at('target'))
  assertRaises(() => open(at('unfinished')), 'ERR_MILLRACE_SHARED_FILE', 'shared.file')
  assert.ok(readFileSync(at('target')).equals(before))
  rmSync(at('unfinished.new'))
})

test('an unfinished file with a second link is refused, not emptied', async () => {
  const unfinished = at('linked.new')
  for (const text of ['somebody’s notes', '']) {
    writeFileSync(at('notes'), text, { mode: 0o600 })
    linkSync(at('notes'), unfinished)
    const act = () => open(at('linked'))
    const { message } = assertRaises(act, 'ERR_MILLRACE_SHARED_FILE', 'shared.file', unfinished)
    assert.match(message, /hard link/)
    assert.is(readFileSync(at('notes'), 'utf8'), text)
    assert.ok(existsSync(unfinished))
    rmSync(unfinished)
  }
  await open(at('linked')).close()
})

test('a foreign file with the name of the unfinished one is refused, not emptied', async () => {
  const unfinished = at('foreign.new')
  for (const bytes of [Buffer.from('somebody’s notes'), Buffer.from(`${'\0'.repeat(270_000)}x`)]) {
    writeFileSync(unfinished, bytes, { mode: 0o600 })
    const act = () => open(at('foreign'))
    const { message } = assertRaises(act, 'ERR_MILLRACE_SHARED_FILE', 'shared.file', unfinished)
    assert.match(message, /unfinished arena of Millrace/)
    assert.ok(readFileSync(unfinished).equals(bytes))
  }
  writeFileSync(unfinished, Buffer.alloc(70_000)) // the file of a process that died while creating it
  await open(at('foreign')).close()
  assert.not(existsSync(unfinished))
})

test('a file truncated between two openings, at a page or within one, is refused, not mapped', async () => {
  const file = await made('cut')
  for (let left = statSync(file).size - 1; left >= 0; left -= 1_024) {
    truncateSync(file, left)
    assertRefused(file, /arena of Millrace|bytes/)
  }
})

test.run()
