import { MillraceError } from 'millrace'
import { inTime } from './in-time.js'

/** A store that can't be used. */
export class StoreError extends Error {}

const START_MS = 5_000

/** Waits until a store is ready. @throws StoreError in one line if it refuses, or does not answer */
export async function withinStart(place: string, ready: Promise<unknown>): Promise<void> {
  try {
    await inTime(START_MS, ready)
  } catch (error) {
    const why = error instanceof MillraceError ? error.message : (error as Error).message
    throw new StoreError(`${place}: ${why}`, { cause: error })
  }
}
