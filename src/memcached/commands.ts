import { MillraceError } from '../core/errors.js'
import type { Exchange } from './channel.js'

/** Memcached takes a longer time to expire as seconds since 1970. */
const LONGEST_RELATIVE_S = 30 * 86_400
/**
 * A relative time ends up to a second early, because the server's clock goes by whole seconds. The other second is for
 * the clocks of processes that differ.
 */
const MARGIN_S = 2
/** A counter that was missing has been created by another process, or is missing again. */
const MOST_ATTEMPTS = 4

/** A later date is over at once on servers that keep dates in 31 bits. */
const LAST_DATE_S = 2 ** 31 - 1

/** The time to expire of a key that is needed for so many milliseconds; 0, for ever: `Infinity`, or after `LAST_DATE_S`. */
export function expiryAfter(ms: number): number {
  if (ms === Number.POSITIVE_INFINITY) return 0
  const seconds = Math.ceil(ms / 1000) + MARGIN_S
  if (seconds <= LONGEST_RELATIVE_S) return seconds
  const date = Math.ceil(Date.now() / 1000) + seconds
  return date <= LAST_DATE_S ? date : 0
}

/**
 * Adds units to a counter. Returns its units afterwards.
 * @param neededMs how long a counter that this creates must stay
 */
export async function increment(
  exchange: Exchange,
  name: string,
  units: number,
  neededMs: number,
): Promise<number> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const counted = await counting(exchange, 'incr', name, units)
    if (counted !== undefined) return counted
    if (exchange.isSettled) break // nobody waits for it
    const value = `${units}`
    const added = await exchange.send(`add ${name} 0 ${expiryAfter(neededMs)} ${value.length}\r\n${value}`)
    if (added === 'STORED') return units
  }
  throw new Error('the counter could not be created')
}

/** Takes units from a counter, down to 0. A counter that has expired has none. */
export async function decrement(exchange: Exchange, name: string, units: number): Promise<void> {
  await counting(exchange, 'decr', name, units)
}

async function counting(
  exchange: Exchange,
  command: 'incr' | 'decr',
  name: string,
  units: number,
): Promise<number | undefined> {
  try {
    const reply = await exchange.send(`${command} ${name} ${units}`)
    return typeof reply === 'number' ? reply : undefined
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('CLIENT_ERROR'))
      throw valueError(name, error.message)
    throw error
  }
}

/** Reads values by one command. Those that are missing are not in the result. */
export async function readAll(exchange: Exchange, names: readonly string[]): Promise<Map<string, string>> {
  const reply = await exchange.send(`get ${names.join(' ')}`, {
    isMultiline: true,
    requestedKeys: [...names],
  })
  const { values = [], foundKeys = [] } = (reply ?? {}) as { values?: string[]; foundKeys?: string[] }
  return new Map(foundKeys.map((name, i) => [name, values[i]!]))
}

export async function write(
  exchange: Exchange,
  name: string,
  value: string,
  neededMs: number,
): Promise<void> {
  await exchange.send(`set ${name} 0 ${expiryAfter(neededMs)} ${value.length}\r\n${value}`)
}

/** Returns whether the key was there. */
export async function remove(exchange: Exchange, name: string): Promise<boolean> {
  return (await exchange.send(`delete ${name}`)) === 'DELETED'
}

/** A counter's units. A decrement leaves spaces behind a number that has become shorter. */
export function unitsIn(values: ReadonlyMap<string, string>, name: string): number {
  const value = values.get(name) ?? '0'
  if (!/^\d{1,16} *$/.test(value)) throw valueError(name, value)
  return Number(value)
}

/** Until when a key is blocked, in milliseconds since 1970; 0: it is not. */
export function untilIn(values: ReadonlyMap<string, string>, name: string): number {
  const value = values.get(name) ?? '0'
  if (!/^(\d{1,16}|Infinity)$/.test(value)) throw valueError(name, value)
  return Number(value)
}

function valueError(name: string, value: string): MillraceError {
  return new MillraceError(
    'ERR_MILLRACE_MEMCACHED_VALUE',
    `the value of '${name}'`,
    value.slice(0, 64),
    'a number that only limiters have written',
  )
}
