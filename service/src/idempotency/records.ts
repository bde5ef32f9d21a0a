// Answers that are kept for an `Idempotency-Key`.

/** An answer that was sent. */
export interface KeptAnswer {
  readonly status: number
  readonly type: string
  readonly body: string
  /** Those of a decision, such as `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What is kept under an identifier: the request's fingerprint, and the answer once there is one. */
export interface Kept {
  readonly request: string
  readonly answer?: KeptAnswer
}

/** Where answers are kept. An engine of the fleet that has the same counts has the same records. */
export interface Records {
  /**
   * Notes that a request is under way, unless something is kept already: then it resolves with that. The note is gone
   * after {@link PENDING_MS}: the engine may have died.
   */
  begin(id: string, request: string): Promise<Kept | undefined>
  /** Keeps the answer. */
  keep(id: string, kept: Kept): Promise<void>
  /** Forgets the note: the request has failed, and may be sent again. */
  forget(id: string): Promise<void>
}

/** The most bytes of answers that an engine keeps. */
export const MOST_BYTES = 64 * 2 ** 20
/** What an entry takes beside the text of its answer, about. */
const ENTRY_BYTES = 512

/** What a record takes, in bytes. */
export const entrySize = ({ answer }: Kept): number => ENTRY_BYTES + 2 * (answer?.body.length ?? 0)

/** How long a request without an answer blocks others with its key. */
export const PENDING_MS = 30_000
