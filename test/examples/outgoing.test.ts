// run: full
import { spawnSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { test as addonTest } from '../native/addon-test.js'
import { example } from './program.js'

/** Runs a program to its end, and returns what it printed. */
function outputOf(name: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [example(name)], {
    encoding: 'utf8',
    timeout: 120_000,
  })
  assert.is(stderr, '')
  assert.is(status, 0, stdout)
  return stdout
}

test('crawler.mjs visits every page, at most 10 a second of each host, and comes back when it was told', () => {
  const output = outputOf('crawler.mjs')
  const lines = output.matchAll(/^(\w+): (\d+) requests, at most (\d+) in any second, 0 refused$/gm)
  const counts = [...lines].map(([, name, requests, most]) => {
    assert.ok(Number(most) <= 10, output)
    return [name, Number(requests)]
  })
  assert.equal(counts, [
    ['news', 26], // the first page twice
    ['shop', 24],
    ['wiki', 24],
  ])
  const [, seconds] = /^news asked for 1 s, and the crawler waited ([\d.]+) s$/m.exec(output) ?? []
  assert.ok(Number(seconds) >= 1, output)
})

addonTest('outgoing-fleet.mjs holds one limit for four processes, and the API refuses nothing', () => {
  const output = outputOf('outgoing-fleet.mjs')
  assert.equal([...output.matchAll(/^process \d+ made 20 calls$/gm)].length, 4, output)
  const [, calls, most] =
    /^the API saw (\d+) calls, at most (\d+) in any second, and refused 0$/m.exec(output) ?? []
  assert.is(Number(calls), 80, output)
  assert.ok(Number(most) <= 20, output)
})

test.run()
