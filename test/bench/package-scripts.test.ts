// run: typescript
import * as assert from 'uvu/assert'
import { expressStore, UpstashCommands } from '../../bench/redis/package-scripts.js'
import type { Load, Scripted } from '../../bench/redis/scripts.js'
import { withRedis } from '../../bench/redis/server.js'
import { Wire } from '../../bench/redis/wire.js'
import { redisTest as test } from '../redis/skip.js'

const LOAD: Load = { limit: 3, windowMs: 3_600_000, granules: 60 }

const LIMITERS: Record<string, () => Promise<Scripted>> = {
  'rate-limit-redis': () => expressStore(LOAD),
  '@upstash/ratelimit': () => UpstashCommands.create(LOAD),
}

/** Loads the script on an empty server, and hands out how a command of it is decided. */
function deciding(
  { source, isAllowed }: Scripted,
  use: (decide: (command: Buffer) => Promise<boolean>) => Promise<void>,
): Promise<void> {
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    await wire.send('SCRIPT', 'LOAD', source)
    await use(async (command) => isAllowed((await wire.pipeline([command]))[0]!))
    wire.close()
  })
}

for (const [name, make] of Object.entries(LIMITERS)) {
  test(`the script of ${name} admits a key up to the limit, each key by itself`, async () => {
    const scripted = await make()
    const busy = scripted.commandOf('busy') // one command, so that all are of one window
    await deciding(scripted, async (decide) => {
      const decisions = []
      for (let i = 0; i < 5; i++) decisions.push(await decide(busy))
      assert.equal(decisions, [true, true, true, false, false])
      assert.is(await decide(scripted.commandOf('idle')), true)
    })
  })
}

test('a charge of @upstash/ratelimit as of some time ago is in a window of that time', async () => {
  const scripted = await UpstashCommands.create(LOAD)
  const longAgo = scripted.chargeBefore('key', 2 * LOAD.windowMs)
  const now = scripted.commandOf('key')
  await deciding(scripted, async (decide) => {
    for (let i = 0; i < 3; i++) assert.is(await decide(longAgo), true)
    assert.is(await decide(longAgo), false)
    assert.is(await decide(now), true)
  })
})

test.run()
