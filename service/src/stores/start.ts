import { MillraceError } from 'millrace'

/** A store that can't be used. */
export class StoreError extends Error {}

const START_MS = 5_000

/** Waits until a store is ready. @throws StoreError in one line if it refuses, or does not answer */
export async function withinStart(place: string, ready: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const why = `no answer within ${START_MS / 1_000} s`
    timer = setTimeout(() => reject(new Error(why)), START_MS)
  })
  try {
    await Promise.race([ready, late])
  } catch (error) {
    const why = error instanceof MillraceError ? error.message : (error as Error).message
    throw new StoreError(`${place}: ${why}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
