/** The longest pause between two attempts to connect, of a connection of the limiter's own. */
const LONGEST_PAUSE_MS = 500

export const CONNECT_TIMEOUT_MS = 1_000

/** A connection that is to end is closed after this, if the server does not end it. */
export const DISCONNECT_TIMEOUT_MS = 100

/** The pause before the next attempt to connect: up to half a second, of which half is random. */
export const reconnectMs = (attempts: number): number =>
  (Math.min(50 * attempts, LONGEST_PAUSE_MS) / 2) * (1 + Math.random())
