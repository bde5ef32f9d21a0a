// The files of examples/service/, and what checks them.
import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { validate } from 'dockerfile-utils'
import { parse, parseAllDocuments } from 'yaml'
import { readText, root } from '../package/root.js'
import { temporaryFolder } from './folder.js'

export const exampleOf = (name: string): string => readText(`examples/service/${name}`)

/** What the linter finds in a Dockerfile. */
export const dockerfileFindings = (text: string): string[] =>
  validate(text).map(({ range, message }) => `${range.start.line + 1}: ${message}`)

// biome-ignore lint/suspicious/noExplicitAny: TypeScript checks it by the types of Kubernetes, see manifestFindings
type Manifest = any

/** The documents of a file of manifests, by their kinds. */
export function manifestsOf(text: string): Readonly<Record<string, Manifest>> {
  const manifests = parseAllDocuments(text).map((document) => document.toJS())
  return Object.fromEntries(manifests.map((manifest) => [manifest.kind, manifest]))
}

/**
 * What TypeScript finds in each of some files of manifests by the types of Kubernetes: fields that are unknown, missing,
 * or of another type.
 */
export function manifestFindings(texts: readonly string[]): string[][] {
  const folder = temporaryFolder()
  symlinkSync(join(root, 'node_modules'), folder.path('node_modules'))
  const files = texts.map((_, i) => `file${i}.ts`)
  for (const [i, text] of texts.entries()) writeFileSync(folder.path(files[i]!), typedManifests(text))
  const options = ['--noEmit', '--strict', '--module', 'preserve', '--types', '', '--pretty', 'false']
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, ...options, ...files], {
    cwd: folder.path('.'),
    encoding: 'utf8',
  })
  folder.remove()
  const errors = stdout.split('\n').filter((line) => line.includes('error'))
  return files.map((file) => errors.filter((line) => line.startsWith(`${file}(`) || line.startsWith('error')))
}

/** Manifests as TypeScript, each as a literal of its type. */
function typedManifests(text: string): string {
  const lines = parseAllDocuments(text).map((document, i) => {
    const manifest = document.toJS()
    const group = manifest.apiVersion.includes('/') ? manifest.apiVersion : `core/${manifest.apiVersion}`
    const type = `import('kubernetes-types/${group}').${manifest.kind}`
    return `export const manifest${i}: ${type} = ${JSON.stringify(manifest)}`
  })
  return lines.join('\n')
}

/** What systemd-analyze says about a unit: its findings, and the exposure of the service from 0 to 10. */
export function unitFindings(text: string): { readonly findings: string; readonly exposure: number } {
  const folder = temporaryFolder()
  const unit = folder.path('millrace.service')
  writeFileSync(unit, text.replace('/usr/bin/node', process.execPath))
  const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, unit], { encoding: 'utf8' })
  const findings = analyze('verify').stderr
  const [, level] =
    /exposure level for \S+: ([\d.]+)/.exec(analyze('security', '--offline=true').stdout) ?? []
  folder.remove()
  return { findings, exposure: Number(level) }
}

/** The options of the service that a command line or a file of an example has, as the engine reads them. */
export function printedOptions(
  args: readonly string[],
  config: string,
): {
  readonly status: number | null
  readonly options: Readonly<Record<string, unknown>>
  readonly stderr: string
} {
  const folder = temporaryFolder()
  const secrets = { 'counts-password': 'a-password', 'tokens.yaml': '[]', 'signing-keys.yaml': '[]' }
  for (const [name, text] of Object.entries(secrets)) writeFileSync(folder.path(name), text)
  writeFileSync(
    folder.path('service.yaml'),
    config.replaceAll('/etc/millrace/secrets/', `${folder.path('.')}/`),
  )
  const here = args.map((arg) => arg.replace('/etc/millrace/', `${folder.path('.')}/`))
  const command = [join(root, 'cli/bin/millrace.js'), 'serve', ...here, '--print-config']
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' })
  folder.remove()
  return { status, options: parse(stdout) ?? {}, stderr }
}
