import { parseArgs } from 'node:util'

export interface Flag {
  readonly fallback: number
  readonly least: number
  readonly most: number
  readonly help: string
}

/** Reads flags that are whole numbers. Prints the help or an error, and exits. */
export function readFlags<Name extends string>(
  command: string,
  flags: Record<Name, Flag>,
): Record<Name, number> {
  const names = Object.keys(flags) as Name[]
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  try {
    const help = { type: 'boolean' as const, short: 'h' }
    const values: Record<string, unknown> = parseArgs({ options: { ...options, help } }).values
    if (values.help) {
      console.log(helpOf(command, flags))
      process.exit(0)
    }
    const numbers = names.map((name) => [name, toNumber(name, values[name], flags[name])] as const)
    return Object.fromEntries(numbers) as Record<Name, number>
  } catch (error) {
    console.error(`${(error as Error).message}\n${helpOf(command, flags)}`)
    process.exit(2)
  }
}

/** Reads one flag, for commands that also have others. Prints an error and exits if it is invalid. */
export function readFlag(name: string, text: string | undefined, flag: Omit<Flag, 'help'>): number {
  try {
    return toNumber(name, text, flag)
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
}

function toNumber(name: string, text: unknown, { fallback, least, most }: Omit<Flag, 'help'>): number {
  if (text === undefined) return fallback
  const value = Number(String(text).replaceAll('_', ''))
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new Error(`--${name} must be an integer from ${least} to ${most}, not ${text}`)
}

function helpOf(command: string, flags: Record<string, Flag>): string {
  const lines = Object.entries(flags).map(
    ([name, { help, fallback }]) => `  --${name.padEnd(12)}${help} (${fallback})`,
  )
  return [command, ...lines].join('\n')
}
