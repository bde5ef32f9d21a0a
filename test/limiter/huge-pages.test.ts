// The option hugePages. Linux tells in /proc/self/smaps which memory was asked to have huge pages ("hg").
import { readFileSync } from 'node:fs'
import { createLimiter, type LimiterOptions, type PoolLimiterOptions } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from './support.js'

const RULE = { limit: 5, window: '1m', maxKeys: 100_000 } as const
const isPossible = process.platform === 'linux' && process.env.MILLRACE_NATIVE !== '0'
const withAddon = isPossible ? test : test.skip

/** The bytes of this process that were asked to have huge pages. */
function askedBytes(): number {
  let [size, asked] = [0, 0]
  for (const line of readFileSync('/proc/self/smaps', 'utf8').split('\n')) {
    size = Number(/^Size: +(\d+) kB$/.exec(line)?.[1] ?? size)
    if (/^VmFlags:.*\bhg\b/.test(line)) asked += 1_024 * size
  }
  return asked
}

const KINDS: Record<string, (hugePages: boolean) => { close(): unknown }> = {
  'one rule': (hugePages) => createLimiter({ ...RULE, hugePages }),
  'several rules': (hugePages) =>
    createLimiter({
      rules: [
        { limit: 5, window: '1m', name: 'a' },
        { limit: 50, window: '1h', name: 'b' },
      ],
      maxKeys: 100_000,
      hugePages,
    }),
  'a pool': (hugePages) => createLimiter({ ...RULE, engine: 'pool', hugePages } as PoolLimiterOptions),
  'a configuration store': (hugePages) =>
    createLimiter({
      config: memoryConfig(),
      default: { limit: 5, window: '1m' },
      maxKeys: 100_000,
      hugePages,
    }),
}

/** They stay open until the end: collected memory would be counted as not asked for. */
const open: { close(): unknown }[] = []
test.after(async () => void (await Promise.all(open.map((limiter) => limiter.close()))))

for (const [kind, create] of Object.entries(KINDS))
  withAddon(
    `${kind}: the whole table is asked to have huge pages, and only if the option says so`,
    async () => {
      const before = askedBytes()
      open.push(create(false))
      assert.is(askedBytes(), before)
      open.push(create(true))
      assert.ok(askedBytes() - before > 30 * 2 ** 20, `${askedBytes() - before}`)
    },
  )

withAddon('a limiter on huge pages decides as any other', () => {
  const limiter = createLimiter({ ...RULE, hugePages: true })
  for (let key = 0; key < 2_000; key++) assert.is(limiter.check(`k${key}`, 5).remaining, 0)
  for (let key = 0; key < 2_000; key++) assert.not(limiter.check(`k${key}`).allowed)
})

const create = (options: object) => () => createLimiter({ ...RULE, ...options } as LimiterOptions)

test('a value that is neither true nor false, and a shared file, are named errors', () => {
  for (const hugePages of [null, 0, 1, 'yes', {}])
    assertRaises(create({ hugePages }), 'ERR_MILLRACE_INVALID_OPTION', 'hugePages')
  assertRaises(
    create({ hugePages: true, shared: { file: '/tmp/x' } }),
    'ERR_MILLRACE_INVALID_OPTION',
    'hugePages',
  )
})

test('without the addon the option is a named error', () => {
  const before = process.env.MILLRACE_NATIVE
  process.env.MILLRACE_NATIVE = '0'
  try {
    assertRaises(create({ hugePages: true }), 'ERR_MILLRACE_NO_ADDON', 'hugePages')
    create({ hugePages: false })()
  } finally {
    if (before === undefined) delete process.env.MILLRACE_NATIVE
    else process.env.MILLRACE_NATIVE = before
  }
})

test.run()
