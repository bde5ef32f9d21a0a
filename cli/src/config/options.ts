// Arguments and options of several subcommands.
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { MillraceError } from 'millrace'
import { checkPolicyKey } from 'millrace/internal'
import type { Environment } from '../terminal.js'

/** Adds a subcommand to `millrace config`. */
export type AddCommand = (config: Command, environment: Environment, exit: (code: number) => void) => void

/** Options that every subcommand with a store has. */
export interface StoreOptions {
  readonly store?: string
}

const STORE = '-s, --store <url>'

export const storeOption = (): Option =>
  new Option(
    STORE,
    'URL of the store: lmdb:, file:, redis://, dynamodb:// or mongodb://; see: millrace help config',
  )

export const jsonOption = (what: string): Option => new Option('--json', what)

export const prefixOption = (): Option =>
  new Option('-p, --prefix <text>', 'only keys that begin so, such as user:').argParser(policyKey)

/** The URL of the store. @throws CommanderError without one */
export function storeIn({ store }: StoreOptions, command: Command): string {
  if (store !== undefined) return store
  return command.error(
    `missing option '${STORE}'. Expected the URL of a store, such as --store lmdb:./limits`,
  )
}

/** An argument that is a key of policies: that of a client, or a prefix. */
export const keyArgument = (name: string, description: string): Argument =>
  new Argument(name, description).argParser(policyKey)

export function policyKey(text: string): string {
  try {
    checkPolicyKey(text)
    return text
  } catch (error) {
    if (error instanceof MillraceError) throw new InvalidArgumentError(`Expected ${error.expected}.`)
    throw error
  }
}

/** Parses the version of a policy. */
export function version(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('Expected the version of a policy, as get and list show it.')
  return number
}
