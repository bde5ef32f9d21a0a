/** What `rateLimit` does in every framework when a function of its options fails. */

import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Serving } from './conformance.js'
import type { AnyOptions } from './driver.js'

export function testFailures(test: Test, base: () => AnyOptions, serving: Serving): void {
  for (const [what, key] of [
    [
      'throws',
      () => {
        throw new Error('no key')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('no key')
      },
    ],
    ['returns nothing', () => undefined],
    ['never answers', () => new Promise(() => {})],
  ] as const) {
    test(`a key function that ${what}: 503, or the request passes, and the error is reported`, async () => {
      for (const answer of ['fail', 'pass'] as const) {
        const errors: unknown[] = []
        const onError = (error: unknown) => {
          errors.push(error)
          return answer
        }
        await serving({ ...base(), key, keyTimeoutMs: 1, onError } as unknown as AnyOptions, async (get) => {
          const response = await get('/')
          assert.is(response.status, answer === 'fail' ? 503 : 200)
          const body = await response.text()
          if (answer === 'fail') assert.match(body, /temporary-reduced-capacity/)
        })()
        assert.is(errors.length, 1)
        assert.match(String(errors[0]), /no key|key: expected|key\(request\): expected/)
      }
    })
  }

  for (const answer of ['fail', 'pass'] as const) {
    test(`with onError '${answer}', no key and no cost of a client is without a limit`, async () => {
      const errors: unknown[] = []
      const onError = (error: unknown) => {
        errors.push(error)
        return answer
      }
      const keys = ['', 'k'.repeat(65_537), ...(answer === 'pass' ? [undefined, 7] : [])]
      for (const later of [false, true]) {
        for (const value of keys) {
          const key = later ? async () => value : () => value
          await serving({ ...base(), key, onError } as unknown as AnyOptions, async (get) => {
            const statuses: number[] = []
            for (let i = 0; i < 4; i++) statuses.push((await get('/')).status)
            assert.equal(statuses, [200, 200, 429, 429])
          })()
          assert.is(errors.splice(0).length, typeof value === 'string' ? 0 : 4)
        }
      }
      for (const cost of [Number.NaN, -1, 0.5, undefined]) {
        await serving({ ...base(), cost: () => cost, onError } as unknown as AnyOptions, async (get) => {
          const statuses: number[] = []
          for (let i = 0; i < 3; i++) statuses.push((await get('/')).status)
          assert.equal(statuses, answer === 'pass' ? [200, 200, 429] : [503, 503, 503])
        })()
        assert.is(errors.splice(0).length, 3)
      }
      await serving({ ...base(), cost: () => 1e300, onError }, async (get) => {
        assert.is((await get('/')).status, 429)
      })()
      assert.equal(errors, [])
    })
  }

  for (const option of ['cost', 'limit', 'skip'] as const) {
    test(`a promise of ${option} that never settles is a failure after keyTimeoutMs`, async () => {
      for (const answer of ['fail', 'pass'] as const) {
        const codes: unknown[] = []
        const onError = (error: unknown) => {
          codes.push((error as { code?: unknown }).code)
          return answer
        }
        const options = { ...base(), [option]: () => new Promise(() => {}), keyTimeoutMs: 1, onError }
        await serving(options as AnyOptions, async (get) => {
          assert.is((await get('/')).status, answer === 'fail' ? 503 : 200)
        })()
        assert.equal(codes, ['ERR_MILLRACE_FUNCTION_TIMEOUT'])
      }
    })
  }
}
