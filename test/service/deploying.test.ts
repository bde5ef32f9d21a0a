// The image, the unit of systemd and the manifests of examples/service/: linted, and compared with the engine. They do not
// run here.
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parse } from 'yaml'
import { readText, root } from '../package/root.js'
import { prometheusTest, systemdTest } from '../redis/skip.js'
import {
  dockerfileFindings,
  exampleOf,
  manifestFindings,
  manifestsOf,
  printedOptions,
  unitFindings,
} from './deploying.js'
import { engine } from './engine.js'
import { temporaryFolder } from './folder.js'

const DOCKERFILE = exampleOf('Dockerfile')
const MANIFESTS = exampleOf('kubernetes.yaml')
const UNIT = exampleOf('millrace.service')
const OPTIONS = exampleOf('service.yaml')
const ADAPTER: { rules: readonly { name: { as: string }; metricsQuery: string }[] } = parse(
  exampleOf('prometheus-adapter.yaml'),
)

/** A text with a mistake. */
function broken(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), from)
  return text.replace(from, to)
}

test('each file says that it has not run here, or which program reads it', () => {
  for (const name of readdirSync(join(root, 'examples/service'))) {
    if (name === 'service.yaml') continue
    const comment = exampleOf(name).split(/\n#?/).slice(0, 3).join('')
    assert.match(comment, /not (?:been )?run|not run|not built here/, name)
  }
})

test('the linter finds nothing in the Dockerfile, and finds mistakes in it', () => {
  assert.equal(dockerfileFindings(DOCKERFILE), [])
  for (const [from, to, finding] of [
    ['USER 1000:1000', 'USR 1000:1000', /Unknown instruction: USR/],
    ['COPY . .', 'COPY .', /COPY requires at least two arguments/],
    ['EXPOSE 8080', 'EXPOSE http', /Invalid containerPort/],
    ['WORKDIR /app', 'WORKDIR app', /WORKDIR paths should be absolute/],
  ] as const)
    assert.match(dockerfileFindings(broken(DOCKERFILE, from, to)).join('\n'), finding)
})

test('the image runs the command of the package, not as root, with options that the engine reads', () => {
  const stage = DOCKERFILE.slice(DOCKERFILE.lastIndexOf('\nFROM '))
  const [, user] = /^USER (\d+):\d+$/m.exec(stage)!
  assert.ok(Number(user) > 0)
  const wordsOf = (instruction: string): string[] =>
    JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, 'm').exec(stage)![1]!)
  const [program, file, command] = wordsOf('ENTRYPOINT')
  const { bin } = JSON.parse(readText('cli/package.json'))
  assert.equal([program, file, command], ['node', `/app/node_modules/millrace-cli/${bin.millrace}`, 'serve'])
  const { status, options, stderr } = printedOptions(wordsOf('CMD'), OPTIONS)
  assert.is(status, 0, stderr)
  assert.is(String(options.port), /^EXPOSE (\d+)$/m.exec(stage)![1])
})

test('the types of Kubernetes find nothing in the manifests, and find mistakes in them', () => {
  const mistakes = [
    ['readinessProbe:', 'readynessProbe:'],
    ['readOnlyRootFilesystem: true', 'readOnlyRootFilesystem: "true"'],
    ['containerPort: 8080', 'port: 8080'],
    ['minReplicas: 3', 'minReplicas: three'],
    ['metric: { name: millrace_decisions_per_second }', 'metrics: { name: millrace_decisions_per_second }'],
    ['kind: Deployment\nmetadata', 'kind: DeploymentSet\nmetadata'],
  ] as const
  const [own, ...found] = manifestFindings([
    MANIFESTS,
    ...mistakes.map(([from, to]) => broken(MANIFESTS, from, to)),
  ])
  assert.equal(own, [])
  for (const [i, [, to]] of mistakes.entries()) assert.ok(found[i]!.length > 0, to)
})

test('the parts of the manifests fit each other and the engine', async () => {
  const { ConfigMap, Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler } =
    manifestsOf(MANIFESTS)
  const { template, selector } = Deployment.spec
  const [container] = template.spec.containers
  for (const labels of [
    selector.matchLabels,
    Service.spec.selector,
    PodDisruptionBudget.spec.selector.matchLabels,
  ])
    assert.equal(labels, template.metadata.labels)
  assert.is(HorizontalPodAutoscaler.spec.scaleTargetRef.name, Deployment.metadata.name)
  assert.equal(parse(ConfigMap.data['service.yaml']), parse(OPTIONS))

  assert.ok(template.spec.securityContext.runAsNonRoot && template.spec.securityContext.runAsUser > 0)
  assert.ok(container.securityContext.readOnlyRootFilesystem)
  assert.not(container.securityContext.allowPrivilegeEscalation)
  assert.equal(container.securityContext.capabilities.drop, ['ALL'])

  const { options, stderr } = printedOptions(['--config', '/etc/millrace/service.yaml'], OPTIONS)
  assert.is(options.port, container.ports[0].containerPort, stderr)
  const { drainDelay, drainTimeout } = options as { drainDelay: number; drainTimeout: number }
  assert.ok(1_000 * template.spec.terminationGracePeriodSeconds > drainDelay + drainTimeout)
  const { periodSeconds, failureThreshold } = container.readinessProbe
  assert.ok(drainDelay > 1_000 * periodSeconds * failureThreshold)

  const { get, close } = await engine({ limit: '10/1m', tokens: TOKENS })
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
    assert.is((await get(container[probe].httpGet.path)).status, 200, probe)
  await close()
})

const TOKENS = [{ token: '0123456789abcdef', scopes: ['read' as const], name: 'prometheus' }]

test('an engine is scaled by the four figures, which its /metrics has', async () => {
  const { metrics } = manifestsOf(MANIFESTS).HorizontalPodAutoscaler.spec
  const named = metrics.map(
    ({ pods, resource }: Record<string, { name?: string; metric?: { name: string } }>) =>
      pods === undefined ? resource!.name : pods.metric!.name,
  )
  assert.equal(named, [...ADAPTER.rules.map(({ name }) => name.as), 'memory', 'cpu'])

  const { post, get, close } = await engine({ limit: '10/1m' })
  await post('/v1/check', { key: 'a' })
  const { body } = await get('/metrics')
  const page = readText('docs/how-to/monitor.md')
  const queries = [...page.slice(page.indexOf('## How it scales')).matchAll(/^\| [^|]+ \| `(.+)` \|$/gm)]
  const texts = [
    ...queries.map(([, query]) => query!),
    ...ADAPTER.rules.map(({ metricsQuery }) => metricsQuery),
  ]
  const names = texts.flatMap((text) => text.match(/\b(?:millrace|process)_\w+/g) ?? [])
  assert.ok(names.length >= 8)
  for (const name of names) assert.match(body, new RegExp(`^# TYPE ${name.replace(/_bucket$/, '')} `, 'm'))
  for (const name of ['process_resident_memory_bytes', 'process_cpu_seconds_total'])
    assert.ok(Number(new RegExp(`^${name} (.+)$`, 'm').exec(body)![1]) > 0, name)
  await close()
})

prometheusTest('promtool takes the scrapes and the queries by which an engine is scaled', () => {
  const folder = temporaryFolder()
  const checked = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', ...args], { encoding: 'utf8' })
    return `${status} ${stdout}${stderr}`
  }
  writeFileSync(folder.path('token'), 'a token')
  // Debian's Prometheus has no discovery of Kubernetes.
  const discovery = 'kubernetes_sd_configs:\n      - role: pod\n'
  const scrapes = broken(exampleOf('prometheus.yml'), discovery, 'static_configs: []\n')
  writeFileSync(
    folder.path('prometheus.yml'),
    scrapes.replace('/etc/prometheus/millrace-token', folder.path('token')),
  )
  assert.match(checked('config', folder.path('prometheus.yml')), /^0 [\s\S]*SUCCESS/)
  const rules = ADAPTER.rules.map(({ name, metricsQuery }) => ({
    record: name.as,
    expr: metricsQuery.replaceAll('<<.GroupBy>>', 'pod').replaceAll('<<.LabelMatchers>>', 'pod="a"'),
  }))
  writeFileSync(folder.path('rules.json'), JSON.stringify({ groups: [{ name: 'adapter', rules }] }))
  assert.match(checked('rules', folder.path('rules.json')), /^0 [\s\S]*2 rules found/)
  folder.remove()
})

systemdTest('systemd-analyze finds nothing in the unit, and that little is exposed', () => {
  assert.equal({ ...unitFindings(UNIT), exposure: 0 }, { findings: '', exposure: 0 })
  assert.ok(unitFindings(UNIT).exposure < 2)
  assert.ok(unitFindings(broken(UNIT, 'ProtectSystem=strict\n', '')).exposure > unitFindings(UNIT).exposure)
  assert.match(unitFindings(broken(UNIT, 'ExecReload=', 'ExecReloads=')).findings, /ExecReloads/)
  const [, file, ...args] = /^ExecStart=\S+ (.*)$/m.exec(UNIT)![1]!.split(' serve')
  assert.is(file, ' --config /etc/millrace/service.yaml')
  assert.equal(args, [])
})

test('the unit starts the engine with options that it reads, and waits as long as it takes to end', () => {
  const { status, options, stderr } = printedOptions(['--config', '/etc/millrace/service.yaml'], OPTIONS)
  assert.is(status, 0, stderr)
  const { drainDelay, drainTimeout } = options as { drainDelay: number; drainTimeout: number }
  assert.ok(1_000 * Number(/^TimeoutStopSec=(\d+)$/m.exec(UNIT)![1]) > drainDelay + drainTimeout)
  const codes = /^RestartPreventExitStatus=(.*)$/m.exec(UNIT)![1]!.split(' ')
  const page = readText('docs/service.md')
  for (const code of codes) assert.match(page, new RegExp(`^\\| ${code} \\| (?:an option|a package)`, 'm'))
})

test.run()
