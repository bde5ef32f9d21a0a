// run: first, full
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../package/project.js'
import { root } from '../package/root.js'

const DEATHS = 20

const built = (name: string) => join(root, 'build/test/stress/pool-deaths', name)

test(`${DEATHS} pool threads die under load: every call settles, no double charge, no key over the limit`, async () => {
  const args = ['--import', built('doomed.js'), built('main.js'), '--deaths', `${DEATHS}`, '--seed', '1']
  const { code, out, err } = await runNode(args, root)
  assert.is(code, 0, `${out}${err}`)
  assert.match(out, `${DEATHS} deaths: `, err)
  assert.match(out, ', 0 hangs, 0 complaints', err)
  // Every manner of death occurred: the round waits for each.
  for (const manner of ['terminate', 'at rest', 'starting', 'starting inside', 'exit', 'throw', 'memory'])
    assert.match(err, new RegExp(`[1-9][0-9]* ${manner}(,|\n)`), err)
  const [, decided, lost] = /([\d,]+) decisions .* ([\d,]+) calls lost/.exec(out)!
  assert.ok(Number(decided!.replaceAll(',', '')) > 10_000, out)
  assert.ok(Number(lost) > 0, `no thread died during a call: ${out}`)
})

test.run()
