import type { ConfigChange } from '../../config-store.js'

/** Where changes come from: a change stream, or the log of a server without replica set. */
export interface ChangeSource {
  /** Resolves when every change from now on will be told. */
  open(): Promise<void>
  /** Waits for changes, for a second or two at most: undefined if there were none. */
  next(): Promise<ConfigChange | undefined>
  /** Ends both. Never rejects. */
  end(): Promise<void>
}

/** Waits, without keeping the process alive. */
export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => void setTimeout(resolve, ms).unref())
