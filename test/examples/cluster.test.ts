// run: full
import { spawnSync } from 'node:child_process'
import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { example } from './program.js'

test('cluster.mjs serves exactly the limit with all four processes', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [example('cluster.mjs')], {
    encoding: 'utf8',
    env: { ...process.env, PORT: '0' },
    timeout: 120_000,
  })
  assert.is(stderr, '')
  assert.is(status, 0, stdout)
  assert.match(stdout, /^1000 served, 2000 refused: exactly the limit$/m)
  const counts = [...stdout.matchAll(/^process \d+ answered (\d+) requests$/gm)].map(([, count]) =>
    Number(count),
  )
  assert.is(counts.length, 4)
  assert.is(
    counts.reduce((sum, count) => sum + count),
    3_000,
  )
  assert.ok(
    counts.every((count) => count > 0),
    `${counts}`,
  )
})

test.run()
