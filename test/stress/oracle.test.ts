// run: first, also-full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { size, sized } from '../size.js'
import { lineOf } from './oracle/all.js'
import { runShape } from './oracle/run.js'
import { SHAPES } from './oracle/shapes.js'

const DECISIONS = sized({ quick: 200_000, full: 4_000_000 })
const QUICK = ['costs of 1 to 3, refunded', 'adjustments']
const shapes = size === 'full' ? SHAPES : SHAPES.filter(({ name }) => QUICK.includes(name))
const THREADS = [4, 2, 4, 8, 3]
const shares = shapes.reduce((sum, { share }) => sum + share, 0)

for (const [i, shape] of shapes.entries()) {
  const threads = THREADS[i % THREADS.length]!
  const decisions = Math.floor((DECISIONS * shape.share) / shares)
  const guarantee = shape.judgesRefusals
    ? 'no window over the limit, no early refusal'
    : 'no window over the limit'

  test(`${threads} threads, ${shape.name}: ${guarantee}`, async () => {
    const found = await runShape(shape, { threads, decisions, seed: i }, () => {})
    const line = lineOf(shape.name, found, 0)
    assert.is(found.over, 0, line)
    assert.is(found.early, 0, line)
    assert.is(found.decisions, decisions)
    assert.is(found.admissions + found.refusals, decisions)
    assert.ok(
      found.windows > 100 && found.refusals > 1_000 && found.rollovers > 100,
      `too few events: ${line}`,
    )
    if (shape.judgesRefusals) assert.ok(found.judged > 10_000, `too few judged refusals: ${line}`)
    if (shape.also === 'refunds') assert.ok(found.refunded > 10 && found.peeks > 1_000, line)
    if (shape.name.startsWith('more keys')) assert.ok(found.evicted > 1_000, line)
  })
}

test.run()
