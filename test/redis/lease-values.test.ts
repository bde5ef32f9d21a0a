// run: modules
// Values with leases, as nodes and strict limiters leave them to each other.
import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import { test as any } from 'uvu'
import { checkRule } from '#millrace/core/rule.js'
import {
  type LeasedRule,
  type LeaseMessage,
  type LeaseReply,
  leaseArguments,
  readLeaseReply,
} from '#millrace/redis/leases/lease-message.js'
import { MOST_RECORDS } from '#millrace/redis/leases/lease-read.js'
import { leaseScript } from '#millrace/redis/leases/lease-script.js'
import { strictScript } from '#millrace/redis/packed/strict-script.js'
import { LEASED, ValueVersion } from '#millrace/redis/script-codes.js'
import { KeyNames } from '#millrace/remote/key-names.js'
import { checkRemoteRule } from '#millrace/remote/remote-rule.js'
import { KEY_FAULT } from '#millrace/remote/reply-codes.js'
import { lifeOf } from '#millrace/remote/restoring/own-charges.js'
import { idOf, START_MS } from './lease-trace.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { connectWire, ReplyError, type Wire } from './wire.js'

const [LIMIT, WINDOW_MS, GRANULE_MS, LEASE_MS] = [10, 60_000, 1_000, 24_000]
const OPTIONS = { limit: LIMIT, window: WINDOW_MS, granularity: GRANULE_MS }
const RULE = checkRemoteRule(checkRule({ name: 'default', ...OPTIONS }))

interface Told extends Partial<Omit<LeaseMessage, 'id' | 'rules'>> {
  readonly node?: string
  readonly rule?: Partial<LeasedRule>
}

/** The message of a node that has spent nothing and wants all. */
function messageOf({ node = 'a', rule, ...told }: Told): LeaseMessage {
  return {
    ...{ id: idOf(node), seq: 1, leaseMs: LEASE_MS, wants: LIMIT, direct: [], ...told },
    rules: [{ limit: LIMIT, held: 0, spent: 0, acked: 0, least: LIMIT, ages: [], ...rule }],
  }
}

class Scene {
  readonly wire: Wire
  readonly client: Redis
  nowMs = START_MS
  readonly #limiters: RedisLimiter[] = []

  constructor(wire: Wire, client: Redis) {
    this.wire = wire
    this.client = client
  }

  /** A strict limiter of the same keys. */
  limiter({ isTest = true, ...options }: { isTest?: boolean; countRefused?: boolean } = {}): RedisLimiter {
    const { client } = this
    const limiter = createRedisLimiter({
      ...{ client, prefix: 'test', ...OPTIONS, deadline: '1m', ...options },
      ...(isTest && { testTime: () => this.nowMs }),
    })
    this.#limiters.push(limiter)
    return limiter
  }

  async send(message: LeaseMessage, key: string, isTest = true): Promise<readonly number[]> {
    const source = leaseScript([RULE], isTest)
    return this.wire.send(
      'EVAL',
      source,
      1,
      nameOf(key),
      ...leaseArguments(message, isTest ? this.nowMs : undefined),
    )
  }

  async read(told: Told = {}, key = 'key', isTest = true): Promise<LeaseReply | undefined> {
    const message = messageOf(told)
    return readLeaseReply(await this.send(message, key, isTest), message, key)
  }

  /** The reply to a message that counts. */
  async lease(told: Told = {}, key = 'key', isTest = true): Promise<LeaseReply> {
    const reply = await this.read(told, key, isTest)
    assert.ok(reply, 'the message is not old')
    return reply
  }

  async version(key = 'key'): Promise<number | undefined> {
    return (await this.client.getBuffer(nameOf(key)))?.readUInt16BE(
      (await this.client.strlen(nameOf(key))) - 2,
    )
  }

  async end(): Promise<void> {
    for (const limiter of this.#limiters) await limiter.close()
    await this.client.flushall()
  }
}

const nameOf = (key: string): string => new KeyNames('test', ['default']).of(key)[0]!

let server: Server
let wire: Wire
let client: Redis

test.before(async () => {
  server = await startRedis()
  wire = await connectWire(server.port)
  client = new Redis(server.port, '127.0.0.1')
})

test.after(async () => {
  wire.close()
  client.disconnect()
  await server.stop()
})

const onServer = (name: string, act: (scene: Scene) => Promise<void>) =>
  test(name, async () => {
    const scene = new Scene(wire, client)
    try {
      await act(scene)
    } finally {
      await scene.end()
    }
  })

onServer('a strict limiter sees what nodes hold until a window after their leases', async (scene) => {
  const limiter = scene.limiter()
  assert.equal((await scene.lease({ wants: 7 })).leased, 7)
  assert.equal((await limiter.check('key', 4)).allowed, false)
  const { retryAfterMs, resetMs } = await limiter.check('key', 4)
  assert.deepEqual(
    [retryAfterMs, resetMs],
    [LEASE_MS + WINDOW_MS + GRANULE_MS, LEASE_MS + WINDOW_MS + GRANULE_MS],
  )
  assert.equal((await limiter.check('key', 3)).remaining, 0)
  assert.equal(await limiter.usage('key'), 3, 'what is held is not used')
  scene.nowMs += WINDOW_MS + GRANULE_MS // the three have left
  assert.equal((await limiter.peek('key', 4)).allowed, false)
  scene.nowMs = START_MS + LEASE_MS + WINDOW_MS + GRANULE_MS - 1
  assert.equal((await limiter.peek('key', 4)).remaining, 3)
  scene.nowMs++
  assert.equal((await limiter.check('key', 10)).allowed, true)
})

onServer('a value without records is that of a strict limiter again', async (scene) => {
  const limiter = scene.limiter()
  await limiter.check('key')
  assert.equal(await scene.version(), ValueVersion.NARROW)
  await scene.lease()
  assert.equal(await scene.version(), ValueVersion.NARROW_LEASED)
  await limiter.block('key', 1_000)
  assert.equal(await scene.version(), ValueVersion.NARROW_LEASED_BLOCKED)
  await limiter.unblock('key')
  await limiter.clear('key')
  await limiter.refund('key', 1)
  await limiter.penalize('key', 1)
  assert.equal(await scene.version(), ValueVersion.NARROW_LEASED)
  scene.nowMs += LEASE_MS + WINDOW_MS + GRANULE_MS
  await limiter.check('key')
  assert.equal(await scene.version(), ValueVersion.NARROW)
})

onServer('a script that knows no records refuses such a value by its version', async (scene) => {
  await scene.lease()
  const source = strictScript([RULE], true)
  const older = source
    .replace(`version <= ${ValueVersion.WIDE_LEASED_BLOCKED}`, `version <= ${ValueVersion.WIDE_BLOCKED}`)
    .replace(` or kind == ${LEASED + 1}`, '')
    .replace(`kind == ${LEASED} `, 'false ')
  const check = (script: string) => wire.send('EVAL', script, 1, nameOf('key'), 'c', LIMIT, scene.nowMs, 1)
  const before = await client.dump(nameOf('key'))
  assert.deepEqual(await check(older), [KEY_FAULT.VERSION])
  assert.deepEqual(await client.dump(nameOf('key')), before)
  assert.notDeepEqual(await check(source), [KEY_FAULT.VERSION])
  await client.del(nameOf('key'))
  assert.ok((await check(older)).length > 1, 'it decides by other values')
})

for (const kind of ['another type', 'another window', 'damaged', 'another version'] as const)
  onServer(`a message meets ${kind}: an error by name, and no rule of it is charged`, async (scene) => {
    const rules = [RULE, RULE]
    const keys = [`${nameOf('key')} 0`, `${nameOf('key')} 1`] as const
    const message = {
      ...messageOf({ direct: [[1, 1]] }),
      rules: [messageOf({}).rules[0]!, messageOf({}).rules[0]!],
    }
    const send = () =>
      wire.send('EVAL', leaseScript(rules, true), 2, ...keys, ...leaseArguments(message, START_MS))
    await send()
    const value = (await client.getBuffer(keys[1]))!
    const spoilt = Buffer.from(value)
    if (kind === 'another version') spoilt[value.length - 1] = 99
    if (kind === 'another window') spoilt[value.length - 3]! ^= 1
    await client.del(...keys)
    if (kind === 'another type') await client.rpush(keys[1], 'a')
    else await client.set(keys[1], kind === 'damaged' ? value.subarray(4) : spoilt)
    const before = await client.dump(keys[1])
    const reply = await send()
    assert.throws(() => readLeaseReply(reply, message, 'key'), { code: 'ERR_MILLRACE_REDIS_VALUE' })
    assert.equal(await client.exists(keys[0]), 0)
    assert.deepEqual(await client.dump(keys[1]), before)
    await scene.client.del(...keys)
  })

onServer('a blocked key leases nothing, admits nothing, and no lease of it is made longer', async (scene) => {
  const limiter = scene.limiter()
  await scene.lease({ wants: 4 })
  scene.nowMs += 20_000
  await limiter.block('key', 30_000)
  const untilMs = scene.nowMs + 30_000
  const reply = await scene.lease({ seq: 2, direct: [[1]], rule: { held: 4 } })
  assert.deepEqual(
    [reply.leased, reply.extends, reply.admitted, reply.waitMs, reply.rules[0]!.blockedUntilMs],
    [0, false, [false], 30_000, untilMs],
  )
  await limiter.block('key', Number.POSITIVE_INFINITY)
  const forEver = await scene.lease({ seq: 3, direct: [[1]], rule: { held: 4 } })
  const { blockedUntilMs, resetMs, remaining } = forEver.rules[0]!
  assert.deepEqual([forEver.waitMs, blockedUntilMs, resetMs, remaining], [Infinity, Infinity, Infinity, 0])
  await limiter.unblock('key')
  scene.nowMs = START_MS + LEASE_MS + WINDOW_MS + GRANULE_MS
  assert.equal(
    (await limiter.peek('key')).remaining,
    LIMIT,
    'the lease has ended as it would have without messages',
  )
})

for (const clears of ['clear', 'clearAll'] as const)
  onServer(`${clears} leaves what nodes hold, because they may spend it`, async (scene) => {
    const limiter = scene.limiter()
    const { rules } = await scene.lease({ wants: 4, direct: [[3]] })
    await limiter.block('key', 1_000)
    await (clears === 'clear' ? limiter.clear('key') : limiter.clearAll())
    assert.equal((await limiter.peek('key')).remaining, 6)
    assert.equal(await limiter.usage('key'), 0)
    const after = await scene.lease({ seq: 2, wants: 0, rule: { held: 4 } })
    assert.equal(after.rules[0]!.remaining, 6)
    assert.equal(lifeOf(after.rules[0]!.birth), lifeOf(rules[0]!.birth), 'it is no loss')
    assert.notEqual(after.rules[0]!.birth, rules[0]!.birth)
  })

onServer('a value lasts until no lease of it counts, whatever is done to it', async (scene) => {
  const limiter = scene.limiter({ isTest: false })
  const leaseMs = 4 * WINDOW_MS
  const acts: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    nothing: async () => {},
    message: (key) => scene.lease({ seq: 2, leaseMs, wants: 0, rule: { held: 4 } }, key, false),
    check: (key) => limiter.check(key),
    refusal: (key) => limiter.check(key, LIMIT),
    penalize: (key) => limiter.penalize(key, 1),
    refund: (key) => limiter.refund(key, 1),
    'give back': async (key) => limiter.refund(await limiter.check(key)),
    block: (key) => limiter.block(key, 1),
    unblock: (key) => limiter.unblock(key),
    clear: (key) => limiter.clear(key),
    'block for ever, and clear': (key) => limiter.block(key, Infinity).then(() => limiter.clear(key)),
    'block for ever, and clearAll': (key) => limiter.block(key, Infinity).then(() => limiter.clearAll()),
    'block for ever, and unblock': (key) => limiter.block(key, Infinity).then(() => limiter.unblock(key)),
  }
  for (const [key, act] of Object.entries(acts)) {
    // A charge of another granule: the check writes the whole value.
    await client.eval(strictScript([RULE], false), 1, nameOf(key), 'a', LIMIT, 1, 2 * GRANULE_MS)
    const { nowMs } = await scene.lease({ leaseMs, wants: 4 }, key, false)
    await act(key)
    const expiresMs = await client.pexpiretime(nameOf(key))
    const countsMs = nowMs + leaseMs + WINDOW_MS
    assert.ok(expiresMs >= countsMs, `${key}: ${expiresMs - countsMs} ms`)
    assert.ok(
      key.includes('clear') || expiresMs <= countsMs + 2 * GRANULE_MS,
      `${key}: ${expiresMs - countsMs} ms`,
    )
    assert.equal((await limiter.peek(key)).remaining <= LIMIT - 4, true, key)
  }
})

onServer('of two nodes with one number the one behind is not heard', async (scene) => {
  await scene.lease({ seq: 5, wants: 6 })
  const before = await client.dump(nameOf('key'))
  assert.equal(await scene.read({ seq: 5, wants: 6, direct: [[1]] }), undefined)
  assert.equal(await scene.read({ seq: 1, wants: 6 }), undefined)
  assert.deepEqual(await client.dump(nameOf('key')), before)
  assert.equal((await scene.lease({ node: 'b', wants: 6 })).leased, 4)
})

onServer('a node is known by its record, not by bytes of another one', async (scene) => {
  await scene.lease({ node: 'xxxxabcd', seq: Buffer.from('efgh').readUInt32BE(), wants: 4 })
  const { leased, active } = await scene.lease({ node: 'abcdefgh', wants: 3 })
  assert.deepEqual([leased, active], [3, 2])
  assert.equal(await scene.read({ node: 'abcdefgh' }), undefined)
})

onServer('after a loss nodes tell what they hold, and what was charged is restored', async (scene) => {
  const limiter = scene.limiter()
  const before = await scene.lease({ wants: 6, direct: [[2]] })
  await client.flushall()
  scene.nowMs += 5_000
  const rule = { held: 3, spent: 3, acked: 1, ages: [{ units: 3, ageMs: 1_000 }] }
  const after = await scene.lease({ seq: 2, wants: 1, rule })
  assert.notEqual(lifeOf(after.rules[0]!.birth), lifeOf(before.rules[0]!.birth))
  // Two were not told before, three are held, and one is leased now.
  assert.deepEqual([after.leased, after.rules[0]!.remaining], [1, 4])
  await wire.send('EVAL', strictScript([RULE], true), 1, nameOf('key'), 'a', LIMIT, scene.nowMs, 2, 5_000)
  assert.equal((await limiter.peek('key')).remaining, 2)
  scene.nowMs = START_MS + WINDOW_MS + GRANULE_MS // the two that were restored have left
  assert.equal((await limiter.peek('key')).remaining, 4)
})

onServer('a shorter lease does not end an earlier one', async (scene) => {
  const limiter = scene.limiter()
  await scene.lease({ wants: 6 })
  await scene.lease({ seq: 2, wants: 1, leaseMs: 10, rule: { held: 6 } })
  scene.nowMs = START_MS + LEASE_MS + WINDOW_MS
  assert.equal((await limiter.peek('key')).remaining, 3)
})

onServer('where the clock has stepped back, leases and ages begin where it has been', async (scene) => {
  const limiter = scene.limiter()
  scene.nowMs += 10 * WINDOW_MS
  await limiter.check('key')
  scene.nowMs = START_MS
  await scene.lease({ wants: 4 })
  const rule = { held: 3, spent: 1, ages: [{ units: 1, ageMs: 5_000 }] }
  assert.equal((await scene.lease({ seq: 2, wants: 1, rule })).leased, 1)
  assert.equal((await limiter.peek('key')).remaining, LIMIT - 6)
  scene.nowMs += 10 * WINDOW_MS + LEASE_MS + WINDOW_MS
  assert.equal(
    (await limiter.peek('key')).remaining,
    LIMIT - 4,
    'the lease ends after the time that it has been',
  )
})

onServer('a batch of a strict limiter decides keys with leases among others', async (scene) => {
  const limiter = scene.limiter()
  await scene.lease({ wants: 8 }, 'leased')
  const batch = await limiter.checkMany(
    ['plain', 'leased', 'other', 'leased', 'leased', 'plain'],
    undefined,
    {
      remaining: true,
    },
  )
  assert.deepEqual([...batch.allowed], [1, 1, 1, 1, 0, 1])
  assert.deepEqual([...batch.remaining!], [9, 1, 9, 0, 0, 8])
})

onServer('of a refusal that counts, the time to wait is right beside leases', async (scene) => {
  const limiter = scene.limiter({ countRefused: true })
  await limiter.check('key', 3)
  scene.nowMs += 7_000
  await scene.lease({ wants: 4 })
  scene.nowMs += 5_000
  for (const cost of [5, 2, 8]) {
    const { allowed, retryAfterMs } = await limiter.check('key', cost)
    assert.equal(allowed, false)
    const refusedMs = scene.nowMs
    scene.nowMs = refusedMs + retryAfterMs - 1
    assert.equal((await limiter.peek('key', cost)).allowed, false, `${cost}`)
    scene.nowMs++
    assert.equal((await limiter.peek('key', cost)).allowed, true, `${cost}`)
    scene.nowMs = refusedMs
  }
})

onServer('a node beyond the most that a value has is decided strictly', async (scene) => {
  const commands = Array.from({ length: MOST_RECORDS }, (_, i) => [
    ...['EVAL', leaseScript([RULE], true), 1, nameOf('key')],
    ...leaseArguments(messageOf({ node: `n${i}`, wants: i === 0 ? 2 : 1, rule: { least: 0 } }), scene.nowMs),
  ])
  for (const reply of await wire.pipeline(commands)) assert.ok(!(reply instanceof ReplyError), String(reply))
  const length = await client.strlen(nameOf('key'))
  const late = await scene.lease({
    node: 'late',
    direct: [[1]],
    rule: { spent: 2, ages: [{ units: 2, ageMs: 0 }] },
  })
  assert.deepEqual([late.leased, late.extends, late.admitted], [0, false, [true]])
  assert.equal(await client.strlen(nameOf('key')), length, 'it has no record')
  assert.equal(late.rules[0]!.remaining, LIMIT - 4 - 3)
  assert.equal((await scene.lease({ node: 'n5', seq: 2, wants: 1 })).leased, 1)
})

onServer('requests with other costs in each rule are charged in all rules, or in none', async (scene) => {
  const keys = [`${nameOf('key')} 0`, `${nameOf('key')} 1`] as const
  const [rule] = messageOf({}).rules as [LeasedRule]
  const direct = [
    [4, 0],
    [7, 1], // too much for the first rule
    [0, 9],
    [1, 2], // for the second
    [6, 1],
    [0, 0],
  ]
  const message = { ...messageOf({ wants: 0, direct }), rules: [rule, rule] }
  const reply = await wire.send(
    ...(['EVAL', leaseScript([RULE, RULE], true), 2, ...keys, ...leaseArguments(message, START_MS)] as const),
  )
  const { admitted, rules } = readLeaseReply(reply, message, 'key')!
  assert.deepEqual(admitted, [true, false, true, false, true, true])
  assert.deepEqual(
    rules.map(({ remaining }) => remaining),
    [0, 0],
  )
  await scene.client.del(...keys)
})

any('of ages the younger counts: whole milliseconds, and none older than one before it', () => {
  const ages = [
    { units: 1, ageMs: 100.9 },
    { units: 2, ageMs: 200 },
    { units: 3, ageMs: -5 },
  ]
  const [bytes] = leaseArguments(messageOf({ rule: { ages } })) as [Buffer]
  const sent = [50, 60, 70].map((at) => [bytes.readUInt32BE(at), bytes.readUIntBE(at + 4, 6)])
  assert.deepEqual(sent, [
    [3, 0],
    [2, 100],
    [1, 100],
  ])
})

any('a message that does not fit is an error', () => {
  const ages = Array.from({ length: 2 ** 16 }, () => ({ units: 1, ageMs: 0 }))
  const direct = Array.from({ length: 2 ** 16 }, () => [1])
  assert.throws(() => leaseArguments(messageOf({ rule: { ages } })), RangeError)
  assert.throws(() => leaseArguments(messageOf({ direct })), RangeError)
  assert.throws(() => leaseArguments(messageOf({ seq: 2 ** 32 })), RangeError)
})

test.run()
