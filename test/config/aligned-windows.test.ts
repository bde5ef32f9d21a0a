// Fixed windows begin at whole multiples of the window in UTC, or with the periods of a calendar, wherever a limiter
// counts, also by a policy. The default clock is another one than the system's: these tests read both.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attachLimiter, createLimiter, type Decision, type LimiterOptions, openLimiter } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { boundsOf } from '../calendar.js'
import { test as withAddon } from '../native/addon-test.js'

const WINDOW_MS = 7 * 3_600_000
/** More than the clocks can differ by in a test, and far less than a window that begins elsewhere would be off. */
const TOLERANCE_MS = 10_000

const rule = { limit: 9, window: '7h', algorithm: 'fixed-window' } as const
const zone = 'Asia/Kathmandu' // no zone with its midnight at a whole hour, or near to one of UTC
const daily = {
  limit: 9,
  algorithm: 'fixed-window',
  align: 'calendar',
  period: 'day',
  timeZone: zone,
} as const
const other = { limit: 9, window: '1m' } as const

interface Kind {
  readonly own: typeof rule | typeof daily
  readonly options: object
  readonly config?: ReturnType<typeof memoryConfig>
}

const byPolicy = (own: Kind['own'], options: object = other): Kind => {
  const config = memoryConfig({ key: own })
  return { own, options: { config, default: options }, config }
}

const kinds: Readonly<Record<string, () => Kind>> = {
  'a rule': () => ({ own: rule, options: rule }),
  'a policy': () => byPolicy(rule),
  'a policy of another fixed window': () => byPolicy(rule, { ...rule, window: '1m' }),
  'a rule of a calendar': () => ({ own: daily, options: daily }),
  'a policy of a calendar': () => byPolicy(daily),
  'a policy of another calendar': () => byPolicy(daily, { ...daily, timeZone: 'UTC' }),
}

interface Deciding {
  check(key: string): Decision | Promise<Decision>
}

async function judge(limiter: Deciding, own: Kind['own']): Promise<void> {
  const decision = await limiter.check('key')
  const { resetMs } = decision.rules.find((part) => part.rule === 'fixed') ?? decision
  const endMs = Date.now() + resetMs
  const offMs = 'window' in own ? offIn(endMs % WINDOW_MS, WINDOW_MS) : offFrom(endMs)
  assert.ok(offMs < TOLERANCE_MS, `the window ends ${offMs} ms off`)
}

const offIn = (over: number, windowMs: number): number => Math.min(over, windowMs - over)

/** From the nearer midnight of the zone. */
function offFrom(endMs: number): number {
  const [startMs, nextMs] = boundsOf('day', zone, endMs)
  return offIn(endMs - startMs, nextMs - startMs)
}

for (const [kind, of] of Object.entries(kinds)) {
  test(`${kind}, on this thread and an attached one`, async () => {
    const { own, options, config } = of()
    const limiter = createLimiter({ maxKeys: 50, ...options } as LimiterOptions)
    await judge(limiter, own)
    const attached = attachLimiter(limiter.share(), config === undefined ? {} : { config })
    await judge(attached, own)
    await attached.close()
    await limiter.close()
  })

  test(`${kind}, on a pool`, async () => {
    const { own, options } = of()
    const limiter = createLimiter({ maxKeys: 50, ...options, engine: 'pool' } as LimiterOptions & {
      engine: 'pool'
    })
    await judge(limiter, own)
    await limiter.close()
  })

  withAddon(`${kind}, in a shared file`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-aligned-'))
    try {
      const { own, options } = of()
      const limiter = await openLimiter({
        maxKeys: 50,
        ...options,
        shared: { file: join(folder, 'counts') },
      } as LimiterOptions)
      await judge(limiter, own)
      await limiter.close()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
}

for (const own of [rule, daily])
  test(`a policy of several rules, ${'window' in own ? 'by UTC' : 'by a calendar'}`, async () => {
    const rules = [
      { name: 'a', ...other },
      { name: 'fixed', ...own },
    ] as const
    const limiter = createLimiter({
      maxKeys: 50,
      config: memoryConfig({ key: { rules: [...rules] } }),
      default: other,
    })
    await judge(limiter, own)
    await limiter.close()
  })

withAddon.run()
test.run()
