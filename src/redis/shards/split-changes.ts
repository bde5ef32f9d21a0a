import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Changing } from '../../remote/remote-store.js'

/** Changes one part of a key by units of each rule. Returns units times the unit. */
type ChangePart = (part: number, units: readonly number[]) => Promise<number[]>

/**
 * Changes a key that has several parts: charges are spread evenly over them, a refund takes from one part after
 * another, all else happens to each.
 * @returns the sum of the answers
 */
export async function changeParts(
  op: Exclude<Changing, 'giveBack'>,
  parts: number,
  units: readonly number[],
  rules: readonly RemoteRule[],
  change: ChangePart,
): Promise<number[]> {
  if (op === 'refund') return refund(parts, units, rules, change)
  const shares =
    op === 'penalize' || op === 'penalizeAgo'
      ? spread(parts, units)
      : Array.from({ length: parts }, () => units)
  const charges = op === 'penalize' || op === 'penalizeAgo'
  const changed = shares.flatMap((share, part) =>
    charges && share.every((own) => own === 0) ? [] : [change(part, share)],
  )
  return sumOf(units, await Promise.all(changed))
}

/** Equal shares of each rule's units. Those that are left go to parts from a random one on. */
function spread(parts: number, units: readonly number[]): number[][] {
  const first = Math.floor(parts * Math.random())
  return Array.from({ length: parts }, (_, part) => {
    const turn = (part - first + parts) % parts
    return units.map((all) => Math.floor(all / parts) + (turn < all % parts ? 1 : 0))
  })
}

async function refund(
  parts: number,
  units: readonly number[],
  rules: readonly RemoteRule[],
  change: ChangePart,
): Promise<number[]> {
  const first = Math.floor(parts * Math.random())
  const given: number[][] = []
  let left = units
  for (let turn = 0; turn < parts && left.some((own) => own > 0); turn++) {
    const back = await change((first + turn) % parts, left)
    given.push(back)
    left = left.map((own, i) => Math.max(0, own - back[i]! / (rules[i]!.rule.unit ?? 1)))
  }
  return sumOf(units, given)
}

const sumOf = (units: readonly number[], answers: readonly (readonly number[])[]): number[] =>
  units.map((_, i) => answers.reduce((sum, answer) => sum + answer[i]!, 0))
