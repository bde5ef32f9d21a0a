// run: addon, also-full
// Four workers of node:cluster with a shared file: what one scrape of the primary finds, and what the clients counted.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { sized } from '../size.js'
import { of, readSeries, sum } from './scrape.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-metrics-'))
always.after(() => rmSync(folder, { recursive: true }))

const USERS = ['alice', 'bob', 'carol']
const REQUESTS = sized({ quick: 800, full: 8_000 })

test('a scrape of four workers under load has exactly the admissions that the clients counted', async () => {
  const program = fileURLToPath(new URL('./cluster-server.js', import.meta.url))
  const child = fork(program, [join(folder, 'counts')], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const [line] = await once(child.stdout!, 'data')
  const { ports, metrics } = JSON.parse(String(line)) as { ports: number[]; metrics: number }
  const scrape = async () => readSeries(await (await fetch(`http://127.0.0.1:${metrics}`)).text())

  const counted = { 200: 0, 429: 0 }
  let sent = 0
  const client = async (first: number): Promise<void> => {
    while (sent < REQUESTS) {
      const i = sent++
      const url = `http://127.0.0.1:${ports[(first + i) % ports.length]}`
      const response = await fetch(url, { headers: { 'x-user': USERS[i % USERS.length]! } })
      await response.text()
      counted[response.status as 200 | 429]++
    }
  }
  const loaded = Promise.all(Array.from({ length: 8 }, (_, first) => client(first)))
  let before = 0
  for (let i = 0; i < 5; i++) {
    const admitted = sum(admissions(await scrape()))
    assert.ok(before <= admitted && admitted <= 150 * USERS.length, `${before} ${admitted}`)
    before = admitted
  }
  await loaded

  const series = await scrape()
  assert.is(counted[200], 150 * USERS.length)
  assert.is(counted[200] + counted[429], REQUESTS)
  assert.equal(admissions(series), { 'limiter=site,outcome=admitted,route=default': counted[200] })
  const decisions = of(series, 'millrace_decisions_total')
  assert.is(decisions['limiter=site,outcome=admitted,route=default,store=memory'], counted[200])
  assert.is(decisions['limiter=site,outcome=refused,route=default,store=memory'], counted[429])
  assert.is(series.get('millrace_table_keys{limiter=site,route=default}'), USERS.length, 'of one table')
  const shared = sum(of(series, 'millrace_shared_decisions_total'))
  assert.ok(shared <= REQUESTS, `${shared} decisions are on one memory, whose counts are not added up`)
  child.disconnect()
  await once(child, 'exit')
})

const admissions = (series: ReadonlyMap<string, number>) =>
  Object.fromEntries(
    Object.entries(of(series, 'millrace_requests_total')).filter(([labels]) => labels.includes('=admitted')),
  )

test.run()
