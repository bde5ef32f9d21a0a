// run: typescript
// The rules for Prometheus, by its own promtool: they are valid, and fire on what they say.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { anchorsOf } from '../package/markdown.js'
import { readText, root } from '../package/root.js'
import { prometheusTest as test } from '../redis/skip.js'

const RULES = 'examples/monitoring/prometheus-rules.yml'
const PAGE = 'docs/how-to/monitor.md'

/** Rejects with what promtool prints, if it finds a fault. */
const promtool = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)('promtool', args, { cwd: root })).stdout

test('promtool finds the rules valid', async () => {
  assert.match(await promtool('check', 'rules', '--lint-fatal', RULES), /SUCCESS: \d+ rules found/)
})

test('each alert fires on what it is for, and rests on what is usual', async () => {
  assert.match(await promtool('test', 'rules', join(root, 'test/monitoring/rules.promtest.yml')), 'SUCCESS')
})

test('each alert has a test, and a section of the page, to which it links', () => {
  const rules = readText(RULES)
  const tests = readText('test/monitoring/rules.promtest.yml')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!)
  const links = [...rules.matchAll(/runbook_url: (\S+)/g)].map(([, link]) => link!)
  assert.ok(alerts.length >= 6)
  assert.equal(
    links,
    alerts.map((name) => `https://github.com/millrace/millrace/blob/main/${PAGE}#${name.toLowerCase()}`),
  )
  const anchors = anchorsOf(readText(PAGE))
  for (const name of alerts) {
    assert.ok(anchors.has(name.toLowerCase()), name)
    assert.match(readText(PAGE), `| [${name}](#${name.toLowerCase()}) |`)
    assert.match(tests, name)
  }
})

test.run()
