import { createLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()

const pooled = (file: string, limit: number) =>
  createLimiter({
    limit,
    window: '1h',
    maxKeys: 100,
    shared: { file },
    engine: 'pool',
    pool: { minThreads: 2 },
  })

test('the threads of pools that name one file have one limit, and find it when they come back', async () => {
  const file = at('pools')
  const one = pooled(file, 1_000)
  const other = pooled(file, 1_000)
  const keys = ['a', 'b', 'c']
  const asked = Array.from({ length: 600 }, (_, i) =>
    keys.map((key) => (i % 2 === 0 ? one : other).check(key)),
  )
  const admitted = (await Promise.all(asked.flat())).filter(({ allowed }) => allowed).length
  assert.is(admitted, 1_800)
  const batch = await other.checkMany(Array(600).fill('b'))
  assert.is(
    batch.allowed.reduce((sum, one) => sum + one, 0),
    400,
  )
  await Promise.all([one.close(), other.close()])
  const later = pooled(file, 1_000)
  assert.equal([await later.usage('a'), (await later.check('b')).allowed], [600, false])
  await later.close()
})

test.run()
