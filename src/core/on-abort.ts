/**
 * The global `AbortSignal`. A program that is compiled without the types of Node.js and of the DOM has no such type; there it
 * is what both have in common.
 */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Global } }
  ? Global
  : { readonly aborted: boolean }

/** Who is to be called when a signal is aborted. */
interface Calls {
  readonly all: Set<() => void>
  readonly listener: () => void
}

const bySignal = new WeakMap<Signal, Calls>()

/**
 * Calls back when the signal is aborted, until {@link offAbort}. One listener for each signal, however many calls it is given to: one
 * for each of eleven would be taken for a leak, and warned of.
 */
export function onAbort(signal: Signal, call: () => void): void {
  let calls = bySignal.get(signal)
  if (calls === undefined) {
    const all = new Set<() => void>()
    const listener = () => {
      for (const each of all) each()
    }
    calls = { all, listener }
    bySignal.set(signal, calls)
    signal.addEventListener('abort', calls.listener)
  }
  calls.all.add(call)
}

export function offAbort(signal: Signal, call: () => void): void {
  const calls = bySignal.get(signal)
  if (!calls?.all.delete(call) || calls.all.size > 0) return
  bySignal.delete(signal)
  signal.removeEventListener('abort', calls.listener)
}
