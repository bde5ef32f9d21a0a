// run: full, also-long
// docs/how-to/monitor.md, each of its commands typed in an empty folder: from the package as packed to an alert of a real
// Prometheus. Times of the rules are shorter here, and ports are free ones. Full tests use no network, so their npm finds
// the packages in the project; the long ones install from the registry.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { linkModule, makeProject, pack } from '../package/project.js'
import { readText, root } from '../package/root.js'
import { poll } from '../redis/poll.js'
import { freePort } from '../redis/ports.js'
import { answers } from '../redis/servers.js'
import { prometheusTest as test } from '../redis/skip.js'
import { isLong } from '../size.js'
import { queriesOf } from './dashboard.js'
import { openShell, type Shell, shellBlocks } from './typed.js'

const PAGE = 'docs/how-to/monitor.md'
const [start, ask, observe, load, stop, restart, ...none] = shellBlocks(PAGE)
/** What the page shows of a minute and of milliseconds comes on a busy machine, too. */
const withoutHurry = (text: string) =>
  text.replace("window: '1m', onOutage", "window: '1h', deadline: '1m', onOutage")
/** Of rates, in place of five minutes. */
const RATE = '10s'

interface Alert {
  readonly state: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

let folder: string
let shell: Shell
/** By the port that the page has. */
const ports: Record<number, number> = {}
/** Of a server with a wrong URL of Redis. */
let wrong: { readonly port: number; readonly metrics: number; readonly redis: number }
let wrongShell: Shell

async function api<T>(path: string): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${ports[9090]}/api/v1/${path}`)
  const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string }
  assert.is(status, 'success', error)
  return data
}

/** The values that a query has at present. */
async function valuesOf(query: string): Promise<number[]> {
  const { result } = await api<{ result: { value: [number, string] }[] }>(
    `query?query=${encodeURIComponent(query)}`,
  )
  return result.map(({ value: [, value] }) => Number(value))
}

/** The alert that fires for the server at a port. */
async function firing(name: string, port: number): Promise<Alert | undefined> {
  const { alerts } = await api<{ alerts: Alert[] }>('alerts')
  return alerts.find(
    ({ state, labels }) =>
      state === 'firing' && labels.alertname === name && labels.instance === `127.0.0.1:${port}`,
  )
}

const isUp = (address: string) => async () => {
  try {
    return (await fetch(address)).ok
  } catch {
    return false
  }
}

function edit(file: string, change: (text: string) => string): void {
  const path = join(folder, file)
  writeFileSync(path, change(readFileSync(path, 'utf8')))
}

test.before(async () => {
  assert.equal(none, [], 'the page has six blocks')
  for (const port of [3000, 9464, 6379, 9090]) ports[port] = await freePort()
  wrong = { port: await freePort(), metrics: await freePort(), redis: await freePort() }
  if (isLong) {
    folder = mkdtempSync(join(tmpdir(), 'millrace-monitor-'))
    await pack(root, folder) // the file of which the page says that `npm pack` makes it
  } else ({ folder } = await makeProject())
  const env = (port: number, metrics: number, redis: number) => ({
    ...process.env,
    PORT: `${port}`,
    METRICS_PORT: `${metrics}`,
    REDIS_URL: `redis://127.0.0.1:${redis}`,
  })
  const replaced = (line: string) => line.replace(/\b(?:3000|9464|6379|9090)\b/g, (port) => `${ports[+port]}`)
  shell = openShell(folder, env(ports[3000]!, ports[9464]!, ports[6379]!), replaced)
  wrongShell = openShell(folder, env(wrong.port, wrong.metrics, wrong.redis), replaced)
})
test.after(async () => {
  await wrongShell.end()
  await shell.end()
  rmSync(folder, { recursive: true, maxRetries: 5 })
})

test('the server of the page runs in a folder that has the package alone, and shows what it refuses', async () => {
  const [install, ...lines] = start!
  const [, names] = /^npm install \.\/millrace-[\d.]+\.tgz (.+)$/.exec(install!)!
  if (isLong) await shell.type(install!)
  else for (const name of names!.split(' ')) linkModule(folder, name)
  for (const line of lines) {
    await shell.type(line)
    if (line.startsWith('cp ')) edit('server.mjs', withoutHurry)
  }
  await answers(ports[6379]!)
  await poll(isUp(`http://127.0.0.1:${ports[9464]}`), 'the server')
  for (const line of ask!.slice(0, -1)) await shell.type(line)
  const shown = /^millrace_requests_total\{.*"refused"\} 20$/m
  assert.match(readText(PAGE), shown)
  assert.match(await shell.type(ask!.at(-1)!), shown)
  const limited = shell.printed.split('\n').filter((line) => line.includes('"msg":"limited"'))
  assert.is(limited.length, 20, 'a line of the log for each')
  assert.is(JSON.parse(limited[0]!).key, '127.0.0.1')
})

test('Prometheus finds its files right, and reads the server', async () => {
  await shell.type(observe![0]!)
  edit('prometheus.yml', (text) =>
    text
      .replaceAll(' 5s', ' 250ms')
      .replace("'127.0.0.1:9464'", `'127.0.0.1:${ports[9464]}', '127.0.0.1:${wrong.metrics}'`),
  )
  edit('prometheus-rules.yml', (text) =>
    text.replace(/for: \d+m/g, 'for: 0s').replace(/\[\d+m\]/g, `[${RATE}]`),
  )
  for (const line of [...observe!, ...load!]) await shell.type(line)
  await poll(isUp(`http://127.0.0.1:${ports[9090]}/-/ready`), 'Prometheus')
  await poll(async () => (await valuesOf('rule:millrace_decisions:rate5m')).length > 0, 'a recorded rule')
})

test('every panel of the dashboard has data', async () => {
  await fetch(`http://127.0.0.1:${ports[3000]}/mail`)
  await fetch(`http://127.0.0.1:${ports[3000]}/login`, { method: 'POST' })
  const queries = queriesOf(RATE)
  assert.ok(queries.length > 20)
  for (const { name, query } of queries)
    await poll(async () => (await valuesOf(query)).some((value) => !Number.isNaN(value)), `${name}: ${query}`)
})

test('the four figures of the page have values', async () => {
  const [, table] = /^## How it scales$([\s\S]*?)^## /m.exec(readText(PAGE))!
  const queries = [...table!.matchAll(/^\| .* \| `(.+)` \|$/gm)].map(([, query]) => query!)
  assert.is(queries.length, 6, 'time and memory have two each')
  for (const query of queries) {
    const own = query.replaceAll('[5m]', `[${RATE}]`)
    await poll(async () => (await valuesOf(own)).some((value) => value > 0), own)
  }
})

test('stopping Redis fires the alert, and starting it ends it', async () => {
  const before = await firing('MillraceOutage', ports[9464]!)
  assert.is(before, undefined)
  for (const line of stop!) await shell.type(line)
  await poll(async () => (await firing('MillraceOutage', ports[9464]!)) !== undefined, 'the alert')
  const { annotations, labels } = (await firing('MillraceOutage', ports[9464]!))!
  assert.equal([labels.store, labels.severity], ['redis', 'critical'])
  assert.is(annotations.summary, `redis does not answer api of 127.0.0.1:${ports[9464]}`)
  assert.is((await fetch(`http://127.0.0.1:${ports[3000]}/`)).status, 200, 'nothing is limited')
  assert.match(shell.printed, /\[MILLRACE_OUTAGE\]/)
  assert.match(shell.printed, /"msg":"outage"/)
  for (const line of restart!) await shell.type(line)
  await poll(async () => (await firing('MillraceOutage', ports[9464]!)) === undefined, 'the end of the alert')
  await poll(() => /"msg":"recovered"/.test(shell.printed), 'a line of the log')
})

test("a wrong URL with 'open' warns, and fires the alert", async () => {
  await wrongShell.type(start!.find((line) => line.startsWith('node '))!)
  await poll(isUp(`http://127.0.0.1:${wrong.metrics}`), 'the server')
  assert.is((await fetch(`http://127.0.0.1:${wrong.port}/`)).status, 200)
  await poll(async () => (await firing('MillraceOutage', wrong.metrics)) !== undefined, 'the alert')
  assert.match(wrongShell.printed, /\[MILLRACE_OUTAGE\].*onOutage: 'open' allows all requests/)
})

test.run()
