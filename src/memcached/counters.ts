import { windowAt } from '../remote/sliding-counter.js'
import type { Exchange } from './channel.js'
import { decrement, increment, readAll, unitsIn } from './commands.js'
import { counterName } from './counter-names.js'

/** A counter of one call, and how long it is needed: to the end of the window after its own. */
export interface Slot {
  readonly name: string
  readonly previousName: string
  readonly index: number
  readonly elapsedMs: number
  readonly neededMs: number
}

/** The counter of the window of a rule in which a moment lies. */
export function slotAt(name: string, windowMs: number, atMs: number, nowMs: number): Slot {
  const { index, elapsedMs } = windowAt(atMs, windowMs)
  return {
    name: counterName(name, windowMs, index),
    previousName: counterName(name, windowMs, index - 1),
    index,
    elapsedMs,
    neededMs: (index + 2) * windowMs - nowMs,
  }
}

/** Charges units, also above the limit. Those of no slot are past. */
export async function addAll(
  exchange: Exchange,
  slots: readonly (Slot | undefined)[],
  units: readonly number[],
): Promise<number[]> {
  const adding = slots.map((slot, i) =>
    slot !== undefined && units[i]! > 0
      ? increment(exchange, slot.name, units[i]!, slot.neededMs)
      : undefined,
  )
  await Promise.all(adding)
  return units.map(() => 0)
}

/** Takes out up to so many units, of the window before first: they have the smaller weight. */
export async function refund(
  exchange: Exchange,
  slots: readonly Slot[],
  units: readonly number[],
): Promise<number[]> {
  const names = slots.flatMap(({ name, previousName }) => [name, previousName])
  const values = await readAll(exchange, names)
  const refunding = slots.map(async ({ name, previousName }, i) => {
    const older = Math.min(units[i]!, unitsIn(values, previousName))
    const newer = Math.min(units[i]! - older, unitsIn(values, name))
    if (older > 0) await decrement(exchange, previousName, older)
    if (newer > 0) await decrement(exchange, name, newer)
    return older + newer
  })
  return Promise.all(refunding)
}

/** Gives back a charge in the window with index `mark`, if that still counts. */
export async function giveBack(exchange: Exchange, slot: Slot, units: number, mark: string): Promise<number> {
  if (mark === '' || units <= 0 || Number(mark) < slot.index - 1) return 0
  const name = Number(mark) < slot.index ? slot.previousName : slot.name
  const [values] = await Promise.all([readAll(exchange, [name]), decrement(exchange, name, units)])
  return Math.min(units, unitsIn(values, name))
}

/** Nobody waits for this. If the connection is lost meanwhile the charge stays, and less is admitted. */
export function takeBack(exchange: Exchange, slots: readonly Slot[], units: readonly number[]): void {
  for (const [i, { name }] of slots.entries()) {
    if (units[i]! > 0) decrement(exchange, name, units[i]!).catch(() => {})
  }
}
