import * as fc from 'fast-check'
import { judge } from 'millrace-cli/dist/replay/judge.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

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
  return judge(
    traffic,
    order,
    Uint8Array.from(decided, ({ allowed }) => Number(allowed)),
    limits,
  )
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

test.run()
