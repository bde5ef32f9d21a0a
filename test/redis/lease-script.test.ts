// run: also-full, also-long, modules
// The scripts of leases and of strict limiters against the model of leases, on one key, in a test's time.
import assert from 'node:assert/strict'
import { checkRule } from '#millrace/core/rule.js'
import { leaseArguments, readLeaseReply } from '#millrace/redis/leases/lease-message.js'
import { leaseScript } from '#millrace/redis/leases/lease-script.js'
import { strictScript } from '#millrace/redis/packed/strict-script.js'
import { checkRemoteRule, type RemoteRule } from '#millrace/remote/remote-rule.js'
import { lifeOf } from '#millrace/remote/restoring/own-charges.js'
import { sized } from '../size.js'
import { type Step, type Trace, traceOf, type Verdict } from './lease-trace.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { type Argument, connectWire, ReplyError, type Wire } from './wire.js'

const RUNS = sized({ quick: 60, full: 1_000, long: 20_000 })

let server: Server
let wire: Wire

test.before(async () => {
  server = await startRedis()
  wire = await connectWire(server.port)
})

test.after(async () => {
  wire.close()
  await server.stop()
})

const remoteRules = (rules: Trace['rules']): RemoteRule[] =>
  rules.map(({ limit, windowMs, parts }, i) =>
    checkRemoteRule(checkRule({ name: `rule ${i}`, limit, window: windowMs, granularity: windowMs / parts })),
  )

/** The commands of a step. The reply to the first one counts. */
function commandsOf(step: Step, rules: readonly RemoteRule[], keys: readonly string[]): Argument[][] {
  const limits = rules.map(({ rule }) => rule.limit)
  const run = (source: string, args: readonly (string | number | Buffer)[]) => [
    ['EVAL', source, keys.length, ...keys, ...args],
  ]
  const strict = (op: string, costs: readonly number[], more: readonly number[] = []) =>
    run(strictScript(rules, true), [op, ...limits, step.nowMs, ...costs, ...more])
  const all = (units: number) => rules.map(() => units)
  switch (step.do) {
    case 'message':
      return run(leaseScript(rules, true), leaseArguments(step.message, step.nowMs))
    case 'check':
      return strict('c', all(step.cost))
    case 'peek':
      return strict('p', all(step.cost))
    case 'penalize':
      return strict(
        'a',
        rules.map((_, i) => (i === step.rule ? step.units : 0)),
        [step.ageMs],
      )
    case 'refund':
      return strict('r', all(step.amount))
    case 'block':
      return strict('b', all(Number.isFinite(step.amount) ? step.amount : -1))
    case 'unblock':
      return strict('u', all(0))
    case 'clear':
      return strict('x', all(0))
    case 'lose':
      return [['DEL', ...keys]]
    case 'copy':
      return keys.map((key) => ['COPY', key, `${key} replica`, 'REPLACE'])
    case 'failOver':
      return [['DEL', ...keys], ...keys.map((key) => ['COPY', `${key} replica`, key])]
  }
}

/** The reply of the strict script to one request. */
function verdictsOf(reply: readonly number[], rules: number): Verdict[] {
  let at = 0
  return Array.from({ length: rules }, () => {
    const isAdmitted = reply[at]! >= 0
    const [remaining, waitMs, resetMs] = isAdmitted ? [reply[at]!, 0, reply[at + 1]!] : reply.slice(at + 1)
    at += isAdmitted ? 4 : 6
    const timeOf = (ms: number) => (ms < 0 ? Number.POSITIVE_INFINITY : ms)
    return { isAdmitted, retryAfterMs: timeOf(waitMs!), remaining: remaining!, resetMs: timeOf(resetMs!) }
  })
}

/** What a step answers, in the words of the model. */
function answerOf(step: Step, reply: readonly number[], rules: readonly RemoteRule[]): unknown {
  if (step.do === 'check' || step.do === 'peek') return verdictsOf(reply, rules.length)
  if (step.do !== 'message') return undefined
  const read = readLeaseReply(reply, step.message, 'key')
  return read && { ...read, rules: read.rules.map((rule) => ({ ...rule, birth: lifeOf(rule.birth) })) }
}

/** Plays a run on Redis. Throws at the first difference. */
async function play({ rules: all, steps }: Trace, name: string): Promise<void> {
  const rules = remoteRules(all)
  const keys = rules.map((_, i) => `{${name}}:${i}`)
  const commands = steps.map((step) => commandsOf(step, rules, keys))
  const replies = await wire.pipeline(commands.flat())
  let at = 0
  for (const [i, step] of steps.entries()) {
    const reply = replies[at]
    at += commands[i]!.length
    const where = () => `${name}, step ${i} of ${steps.length}: ${JSON.stringify({ all, step })}`
    if (reply instanceof ReplyError) throw new Error(`${reply.message} at ${where()}`)
    if ('expected' in step) assert.deepEqual(answerOf(step, reply, rules), step.expected, where())
  }
  await wire.send('FLUSHALL')
}

for (const hasChanges of [false, true]) {
  const what = hasChanges
    ? 'with penalties, refunds, blocks and clearings in between'
    : 'of nodes and strict callers'
  test(`random runs ${what}: every reply is that of the model`, async () => {
    let steps = 0
    for (let seed = 1; seed <= RUNS; seed++) {
      const trace = traceOf(seed, hasChanges)
      assert.equal(trace.wrong, undefined, `run ${seed}`)
      await play(trace, `${hasChanges ? 'changed' : 'plain'} run ${seed}`)
      steps += trace.steps.length
    }
    assert.ok(steps > 20 * RUNS, `${steps} steps`)
  })
}

test.run()
