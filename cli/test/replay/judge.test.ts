// run: also-long

import { judge } from 'millrace-cli/dist/replay/judge.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

const NAMES = ['a', 'b', 'c']

interface Decided {
  client: number
  atMs: number
  allowed: boolean
}

/** Random decisions, right and wrong. */
const decisions = fc.array(
  fc.record({ client: fc.nat(NAMES.length - 1), atMs: fc.nat(600), allowed: fc.boolean() }),
  { maxLength: 80 },
)
const bounds = fc.record({
  limit: fc.integer({ min: 1, max: 5 }),
  windowMs: fc.integer({ min: 1, max: 200 }),
  granularityMs: fc.integer({ min: 1, max: 50 }),
})

function judged(decided: Decided[], limits: { limit: number; windowMs: number; granularityMs: number }) {
  const order = Uint32Array.from(decided, (_, i) => i).sort(
    (a, b) => decided[a]!.atMs - decided[b]!.atMs || a - b,
  )
  const traffic = {
    clients: NAMES,
    atMs: decided.map(({ atMs }) => atMs),
    client: decided.map(({ client }) => client),
  }
  const refusers = Uint16Array.from(decided, ({ allowed }) => (allowed ? 0 : 1))
  return judge(traffic, order, refusers, [{ name: 'one', ...limits }])
}

test('exactly the wrong decisions are found', () => {
  fc.assert(
    fc.property(decisions, bounds, (decided, limits) => {
      const { limit, windowMs, granularityMs } = limits
      const inOrder = decided.toSorted((a, b) => a.atMs - b.atMs)
      const expected = { refused: 0, wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 }
      inOrder.forEach(({ client, atMs, allowed }, i) => {
        const before = inOrder.slice(0, i).filter((other) => other.client === client && other.allowed)
        const used = (ms: number) => before.filter((other) => atMs - other.atMs < ms).length
        if (allowed) expected.wronglyAdmitted += Number(used(windowMs) >= limit)
        else {
          expected.refused++
          expected.wronglyRefused += Number(used(windowMs) < limit)
          expected.refusedTooEarly += Number(used(windowMs + granularityMs) < limit)
        }
      })
      const { exactRefused, ...counts } = judged(decided, limits).counts
      assert.equal(counts, expected)
    }),
    { numRuns: 500 },
  )
})

test('the refusals of the exact log do not depend on the limiter', () => {
  fc.assert(
    fc.property(decisions, bounds, (decided, limits) => {
      const turned = decided.map((one) => ({ ...one, allowed: !one.allowed }))
      assert.is(judged(decided, limits).counts.exactRefused, judged(turned, limits).counts.exactRefused)
    }),
  )
})

test('an exact log has no wrong decisions', () => {
  fc.assert(
    fc.property(decisions, bounds, (decided, limits) => {
      const inOrder = decided.toSorted((a, b) => a.atMs - b.atMs)
      for (const [i, one] of inOrder.entries()) {
        const used = inOrder
          .slice(0, i)
          .filter(
            ({ client, atMs, allowed }) =>
              allowed && client === one.client && one.atMs - atMs < limits.windowMs,
          )
        inOrder[i] = { ...one, allowed: used.length < limits.limit }
      }
      const { refused, exactRefused, ...wrong } = judged(inOrder, limits).counts
      assert.is(refused, exactRefused)
      assert.equal(wrong, { wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 })
    }),
  )
})

test('the listed clients are those with a refusal, with their requests', () => {
  fc.assert(
    fc.property(decisions, bounds, (decided, limits) => {
      const found = judged(decided, limits).refusedMost.map(({ client, requests, refused }) => [
        client,
        requests,
        refused,
      ])
      const expected = NAMES.map((name, number) => {
        const own = decided.filter(({ client }) => client === number)
        return [name, own.length, own.filter(({ allowed }) => !allowed).length]
      })
      assert.equal(
        found,
        expected.filter(([, , refused]) => refused !== 0),
      )
    }),
  )
})

/** Random decisions of three rules, and which of them refused. */
const byThree = fc.array(
  fc.record({ client: fc.nat(NAMES.length - 1), atMs: fc.nat(600), refusers: fc.nat(7) }),
  { maxLength: 80 },
)
const threeRules = fc
  .tuple(bounds, bounds, bounds)
  .map((rules) => rules.map((rule, i) => ({ name: `${i}`, ...rule })))

test('with several rules, a request has room if all have, and each rule counts its refusals', () => {
  fc.assert(
    fc.property(byThree, threeRules, (decided, rules) => {
      const inOrder = decided.toSorted((a, b) => a.atMs - b.atMs)
      const expected = { refused: 0, wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 }
      inOrder.forEach(({ client, atMs, refusers }, i) => {
        const before = inOrder.slice(0, i).filter((other) => other.client === client && other.refusers === 0)
        const fits = (longer: 0 | 1) =>
          rules.every(({ limit, windowMs, granularityMs }) => {
            const length = windowMs + longer * granularityMs
            return before.filter((other) => atMs - other.atMs < length).length < limit
          })
        if (refusers === 0) expected.wronglyAdmitted += Number(!fits(0))
        else {
          expected.refused++
          expected.wronglyRefused += Number(fits(0))
          expected.refusedTooEarly += Number(fits(1))
        }
      })
      const { counts, rules: byRule } = judge(
        {
          clients: NAMES,
          atMs: inOrder.map(({ atMs }) => atMs),
          client: inOrder.map(({ client }) => client),
        },
        Uint32Array.from(inOrder, (_, i) => i),
        Uint16Array.from(inOrder, ({ refusers }) => refusers),
        rules,
      )
      const { exactRefused, ...wrong } = counts
      assert.equal(wrong, expected)
      for (const [i, found] of byRule.entries()) {
        const own = inOrder.filter(({ refusers }) => (refusers & (1 << i)) !== 0)
        assert.equal(found, {
          refused: own.length,
          refusedAlone: own.filter(({ refusers }) => refusers === 1 << i).length,
          refusedClients: new Set(own.map(({ client }) => client)).size,
        })
      }
    }),
    { numRuns: 300 },
  )
})

test('the exact log of several rules refuses what one of them has no room for', () => {
  fc.assert(
    fc.property(byThree, threeRules, (decided, rules) => {
      const inOrder = decided.toSorted((a, b) => a.atMs - b.atMs)
      const passed: typeof inOrder = []
      for (const one of inOrder) {
        const own = passed.filter(({ client }) => client === one.client)
        const fits = rules.every(
          ({ limit, windowMs }) => own.filter(({ atMs }) => one.atMs - atMs < windowMs).length < limit,
        )
        if (fits) passed.push(one)
      }
      const { counts } = judge(
        {
          clients: NAMES,
          atMs: inOrder.map(({ atMs }) => atMs),
          client: inOrder.map(({ client }) => client),
        },
        Uint32Array.from(inOrder, (_, i) => i),
        Uint16Array.from(inOrder, ({ refusers }) => refusers),
        rules,
      )
      assert.is(counts.exactRefused, inOrder.length - passed.length)
    }),
  )
})

test.run()
