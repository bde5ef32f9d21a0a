import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { costsOf } from '../../bench/http/in-situ.js'

const slice = (mode: number, requests: number, cpuUs: number) => ({ mode, requests, cpuUs })

test('a cost is compared with the baseline of its own cycle', () => {
  const cycles = [
    [slice(0, 10, 200), slice(1, 10, 210)],
    [slice(1, 10, 430), slice(0, 20, 800)], // the machine was slower, and the modes came in another order
    [slice(0, 10, 220), slice(1, 5, 115)],
  ]
  assert.equal(costsOf(['baseline', 'counted'], cycles), [
    { mode: 'baseline', perRequestUs: 22, overBaselineUs: 0, quartilesUs: [0, 0] },
    { mode: 'counted', perRequestUs: 23, overBaselineUs: 1, quartilesUs: [1, 3] },
  ])
})

test('a slice without requests is an error', () => {
  assert.throws(() => costsOf(['baseline'], [[slice(0, 0, 10)]]), 'no requests')
})

test.run()
