/** The exit code of a command that Ctrl-C has ended. */
export const INTERRUPTED = 130

/** Calls `act` with a signal that the first Ctrl-C aborts. A second one ends the process. */
export async function interruptible<T>(act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController()
  const onInterrupt = () => interrupt.abort()
  process.once('SIGINT', onInterrupt)
  try {
    return await act(interrupt.signal)
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}
