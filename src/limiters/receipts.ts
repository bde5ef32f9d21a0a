// Charges that travel: a decision as plain data, for a refund or a commit in another process that has the same counts.
import type { AsyncReservation, Reservation } from '../api/reservation.js'
import type { Decision } from '../core/decision.js'

/** What says where a charge is. It is plain data, so it can be JSON. It is valid where the same counts are. */
export type Receipt = Readonly<Record<string, unknown>>

/** A limiter whose charges can be given back in another process. */
export interface Receipts {
  /** Says where the charge of a decision is; undefined if it has charged nothing. */
  receiptOf(decision: Decision): Receipt | undefined
  /**
   * The decision of a receipt, with what settles it. Undefined: this limiter knows no windows of its kind, as those of
   * a policy that it has not used yet. The caller makes sure that a receipt is used once.
   */
  reservationOf(receipt: Receipt): Reservation | AsyncReservation | undefined
}

/** The receipts of a limiter; undefined if it has none: one on a pool, or on a backend without them. */
export function receiptsOf(limiter: object): Receipts | undefined {
  return 'receiptOf' in limiter ? (limiter as Receipts) : undefined
}

/** Limits may be infinite, and JSON has no Infinity. */
export const savedLimit = (limit: number): number | null =>
  limit === Number.POSITIVE_INFINITY ? null : limit
export const restoredLimit = (saved: number | null): number => saved ?? Number.POSITIVE_INFINITY
