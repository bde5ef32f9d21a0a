// Reads the options from flags, the environment and the file, and finds what contradicts.
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { meantBy } from 'millrace/internal'
import { parse as parseYaml } from 'yaml'
import { hasPassword, shownUrl } from '../stores/addresses.js'
import { OptionError } from './option.js'
import { flagOf, OPTION_NAMES, type OptionName, optionOf, type Settings, variableOf } from './table.js'

/** A value, and the source that has given it. */
export interface Told {
  readonly value: unknown
  readonly by: string
}

/** What the sources say, by option. */
export type Sources = ReadonlyMap<OptionName, Told>

/** The options, checked, with where each is from. Options that no source has are not in `sources`. */
export interface Read {
  readonly settings: Settings
  readonly sources: Sources
  /** The files that it was read from. */
  readonly files: readonly string[]
}

/** What the command line says beside the options. */
export interface Arguments {
  readonly flags: Readonly<Record<string, unknown>>
  readonly config: string | undefined
  readonly printConfig: boolean
  readonly help: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/** @throws OptionError for an unknown flag, and for a secret */
export function readArguments(args: readonly string[]): Arguments {
  const options = Object.fromEntries([
    ...OPTION_NAMES.map((name) => [
      flagOf(name).slice(2),
      { type: optionOf(name).isSwitch ? 'boolean' : 'string', multiple: true } as const,
    ]),
    ['config', { type: 'string' } as const],
    ['print-config', { type: 'boolean' } as const],
    ['help', { type: 'boolean', short: 'h' } as const],
  ])
  const known = Object.keys(options)
  for (const arg of args) {
    const [name] = /^--([^=]+)/.exec(arg)?.slice(1) ?? []
    if (name === undefined || known.includes(name)) continue
    const meant = meantBy(name, known)
    const hint = meant === undefined ? 'see: millrace serve --help' : `did you mean --${meant}?`
    throw new OptionError(`unknown option --${name} (${hint})`)
  }
  try {
    const { values } = parseArgs({ args: [...args], options })
    const { config, 'print-config': printConfig, help, ...flags } = values as Record<string, unknown>
    return {
      flags,
      config: config as string | undefined,
      printConfig: printConfig === true,
      help: help === true,
    }
  } catch (error) {
    throw new OptionError((error as Error).message.split('. ')[0]!)
  }
}

/** @throws OptionError that names the option */
export function readOptions(args: Arguments, environment: Environment): Read {
  const file = args.config ?? environment[variableOf('config')]
  const sources = new Map<OptionName, Told>()
  const files: string[] = []
  if (file !== undefined) {
    files.push(file)
    for (const [name, value] of Object.entries(fileOptions(file)))
      tell(sources, name as OptionName, value, file)
  }
  for (const name of OPTION_NAMES) {
    const text = environment[variableOf(name)]
    if (text !== undefined && text !== '')
      tell(sources, name, optionOf(name).fromText(text), variableOf(name))
    const flag = flagOf(name)
    const values = args.flags[flag.slice(2)] as readonly (string | boolean)[] | undefined
    if (values !== undefined) tellFlags(sources, name, values)
  }
  readSecretFiles(sources, files)
  return { settings: settingsOf(sources), sources, files }
}

/** Options of a program. @throws OptionError that names the option */
export function readValues(values: Readonly<Record<string, unknown>>): Read {
  const sources = new Map<OptionName, Told>()
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    checkName(name, 'serve')
    tell(sources, name as OptionName, value, 'serve')
  }
  const files: string[] = []
  readSecretFiles(sources, files)
  return { settings: settingsOf(sources), sources, files }
}

function tellFlags(
  sources: Map<OptionName, Told>,
  name: OptionName,
  values: readonly (string | boolean)[],
): void {
  const flag = flagOf(name)
  if (optionOf(name).isSecret) {
    const others = `the environment (${variableOf(name)}), the file, or ${flag}-file`
    throw new OptionError(
      `${flag}: expected no secret in a flag, which other users of the machine see. Use ${others}`,
    )
  }
  for (const value of values) {
    if (typeof value === 'string' && hasPassword(value))
      throw new OptionError(
        `${flag}: expected no password in a flag, which other users of the machine see. Use ${flag}-password-file`,
      )
  }
  const read = values.map((value) => (typeof value === 'string' ? optionOf(name).fromText(value) : value))
  if (read.every((value) => Array.isArray(value))) tell(sources, name, read.flat(), flag)
  else for (const value of read) tell(sources, name, value, flag)
}

/** @throws OptionError if another source has said something else */
function tell(sources: Map<OptionName, Told>, name: OptionName, given: unknown, by: string): void {
  const value = optionOf(name).check(
    given,
    by === 'serve' ? name : `${by}${by === flagOf(name) ? '' : `: ${name}`}`,
  )
  const before = sources.get(name)
  if (before !== undefined && !isDeepStrictEqual(before.value, value)) {
    const both = optionOf(name).isSecret ? '' : `: ${shown(before.value)} and ${shown(value)}`
    throw new OptionError(`${name}: expected one value, got two, from ${before.by} and ${by}${both}`)
  }
  if (before === undefined) sources.set(name, { value, by })
}

const shown = (value: unknown): string => shownUrl(JSON.stringify(value))

function fileOptions(file: string): Readonly<Record<string, unknown>> {
  const parsed = parsedFile(file, '--config')
  if (parsed === null) return {} // an empty file
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw new OptionError(`${file}: expected options by name, got another YAML document`)
  for (const name of Object.keys(parsed)) checkName(name, file)
  return parsed as Readonly<Record<string, unknown>>
}

function checkName(name: string, by: string): void {
  if (OPTION_NAMES.includes(name as OptionName)) return
  const meant = meantBy(name, OPTION_NAMES)
  throw new OptionError(
    `${by}: unknown option ${JSON.stringify(name)}${meant ? ` (did you mean ${meant}?)` : ''}`,
  )
}

/** The content of a secret file is YAML for a list, and text for a password. */
function readSecretFiles(sources: Map<OptionName, Told>, files: string[]): void {
  for (const name of OPTION_NAMES) {
    if (!optionOf(name).isSecret) continue
    const file = sources.get(`${name}File` as OptionName)?.value as string | undefined
    if (file === undefined) continue
    files.push(file)
    const isText = name.endsWith('Password')
    tell(sources, name, isText ? textOf(file, name).trim() : parsedFile(file, name), file)
  }
}

function textOf(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new OptionError(
      `${name}: expected a file that can be read, got ${file}: ${(error as Error).message}`,
    )
  }
}

/** The error of a file of secrets has no line of it. */
function parsedFile(file: string, name: string): unknown {
  const text = textOf(file, name)
  try {
    return parseYaml(text, { prettyErrors: false })
  } catch {
    throw new OptionError(`${name}: expected a file of YAML or JSON, got ${file}`)
  }
}

function settingsOf(sources: Sources): Settings {
  return Object.fromEntries(
    OPTION_NAMES.map((name) => [name, sources.get(name)?.value ?? optionOf(name).fallback]),
  ) as unknown as Settings
}
