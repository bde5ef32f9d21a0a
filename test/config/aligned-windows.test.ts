// Fixed windows begin at whole multiples of the window in UTC wherever a limiter counts, also by a policy. The default
// clock is another one than the system's: these tests read both.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attachLimiter, createLimiter, type Decision, type LimiterOptions, openLimiter } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { test as withAddon } from '../native/addon-test.js'

const WINDOW_MS = 7 * 3_600_000
/** More than the clocks can differ by in a test, and far less than a window that begins elsewhere would be off. */
const TOLERANCE_MS = 10_000

const rule = { limit: 9, window: '7h', algorithm: 'fixed-window' } as const
const config = () => memoryConfig({ key: rule })
const kinds: Readonly<Record<string, () => object>> = {
  'a rule': () => rule,
  'a policy': () => ({ config: config(), default: { limit: 9, window: '1m' } }),
  'a policy of another fixed window': () => ({ config: config(), default: { ...rule, window: '1m' } }),
}

interface Deciding {
  check(key: string): Decision | Promise<Decision>
}

async function judge(limiter: Deciding): Promise<void> {
  const decision = await limiter.check('key')
  const { resetMs } = decision.rules.find((part) => part.rule === 'fixed') ?? decision
  const over = (Date.now() + resetMs) % WINDOW_MS
  const offMs = Math.min(over, WINDOW_MS - over)
  assert.ok(offMs < TOLERANCE_MS, `the window ends ${offMs} ms off`)
}

for (const [kind, of] of Object.entries(kinds)) {
  test(`${kind}, on this thread and an attached one`, async () => {
    const limiter = createLimiter({ maxKeys: 50, ...of() } as LimiterOptions)
    await judge(limiter)
    const other = attachLimiter(limiter.share(), kind === 'a rule' ? {} : { config: config() })
    await judge(other)
    await other.close()
    await limiter.close()
  })

  test(`${kind}, on a pool`, async () => {
    const limiter = createLimiter({ maxKeys: 50, ...of(), engine: 'pool' } as LimiterOptions & {
      engine: 'pool'
    })
    await judge(limiter)
    await limiter.close()
  })

  withAddon(`${kind}, in a shared file`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-aligned-'))
    try {
      const limiter = await openLimiter({
        maxKeys: 50,
        ...of(),
        shared: { file: join(folder, 'counts') },
      } as LimiterOptions)
      await judge(limiter)
      await limiter.close()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
}

test('a policy of several rules', async () => {
  const rules = [
    { name: 'a', limit: 9, window: '1m' },
    { name: 'fixed', ...rule },
  ] as const
  const limiter = createLimiter({
    maxKeys: 50,
    config: memoryConfig({ key: { rules: [...rules] } }),
    default: { limit: 9, window: '1m' },
  })
  await judge(limiter)
  await limiter.close()
})

withAddon.run()
test.run()
