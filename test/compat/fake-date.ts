/** A `Date.now` that stands still until a test turns it. `new Date()` of V8 does not read it. */
export interface FakeDate {
  /** Sets `Date.now()`. */
  set(ms: number): void
  /** Moves `Date.now()` by `ms`. */
  tick(ms: number): void
}

/** A whole second, in 2027. */
export const START_MS = 1_800_000_000_000

/** Runs `body` with a `Date.now` that begins at `startMs`, and puts the real one back. */
export async function withFakeDate<T>(
  body: (date: FakeDate) => T | Promise<T>,
  startMs = START_MS,
): Promise<T> {
  const real = Date.now
  let nowMs = startMs
  Date.now = () => nowMs
  try {
    return await body({
      set: (ms) => {
        nowMs = ms
      },
      tick: (ms) => {
        nowMs += ms
      },
    })
  } finally {
    Date.now = real
  }
}
