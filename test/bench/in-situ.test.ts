import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { costOf } from '../../bench/http/in-situ.js'

const slice = (mode: number, requests: number, cpuUs: number) => ({ mode, requests, cpuUs })

test('a cost is the difference of the lower quartiles of both modes', () => {
  const baseline = [10, 12, 11, 40].map((us) => slice(0, 10, us * 10))
  const measured = [13, 90, 14, 12].map((us) => slice(1, 20, us * 20))
  assert.equal(costOf([...baseline, ...measured]), { overUs: 2, perRequestUs: 13 })
})

test('a slice without requests is an error', () => {
  assert.throws(() => costOf([slice(0, 1, 10), slice(1, 0, 10)]), 'no requests')
})

test.run()
