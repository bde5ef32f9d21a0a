// Decisions by several rules, and reservations, made of the steps of one decision.
//
// Each rule has its own cell, so the model gives it its own key. `{ kind: 'rules', key, rest }` decides for
// `key`, then for the keys of `rest`, in order. The thread keeps the way, tick and stamp of each admission.
// The oracle admits all of them when the last rule commits. A refusal gives back the admissions before it.
// The members of a group are keys, too. A group with another order of its members is another order of the
// keys.
import { become, broken, done, to } from './words.mjs'

/** Returns the step after the admission of one key. */
export function admitted(op, { w, now, e, r }) {
  const { kind, key, cost, rest, actualCost } = op
  if (kind === 'borrow') return to('giveBack', { w, e, r })
  if (kind === 'rules' && rest.length > 0) return decideNext(op, now)
  if (kind !== 'reserve' || actualCost === cost) return done('admitted')
  // A smaller actual cost gives back a part of the charge. A larger one is charged in addition, without a
  // limit.
  if (actualCost < cost) {
    const units = broken === 'a part given back as a whole' ? cost : cost - actualCost
    return become({ kind: 'settle', key, cost: units, most: cost - actualCost }, 'giveBack', { w, e, r })
  }
  return become({ kind: 'penalize', key, cost: actualCost - cost }, 'lookup', {})
}

/** Decides for the next rule, by the same reading of the clock. */
const decideNext = ({ kind, cost, of, rest: [key, ...rest] }, now) =>
  become({ kind, cost, of, key, rest }, 'lookup', { early: now })

/**
 * Returns the step after the end of an operation, or undefined. `parts` are the charges of its thread that
 * are not admitted. `w` and `e` are the way and the tick at the end.
 */
export function afterRefusal(op, result, parts, { w, e }) {
  if (op.kind === 'rules' && result !== 'admitted') {
    if (broken === 'rules decided after a refusal' && op.rest.length > 0) return decideNext(op)
    if (broken === 'a refusal keeps its charges') return
    if (broken === 'the refused rule given back')
      return become({ kind: 'take back', key: op.key, cost: op.cost }, 'giveBack', { w, e, r: 0 })
    return takeBack(op.cost, parts)
  }
  if (op.kind === 'take back') return takeBack(op.cost, parts)
}

function takeBack(cost, parts) {
  const [part] = parts
  return (
    part &&
    become({ kind: 'take back', key: part.key, cost }, 'giveBack', { w: part.w, e: part.e, r: part.r })
  )
}
