/** The global `AbortSignal`. Without the types of Node.js or of the DOM, it is an object with `aborted`. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Global } }
  ? Global
  : { readonly aborted: boolean }

/** The callbacks of one signal, and the listener that calls them. */
interface Callbacks {
  readonly all: Set<() => void>
  readonly listener: () => void
}

const bySignal = new WeakMap<Signal, Callbacks>()

/**
 * Calls `callback` when the signal is aborted, until {@link offAbort}. A signal gets one listener for all its
 * callbacks: Node.js warns of a leak at eleven listeners.
 */
export function onAbort(signal: Signal, callback: () => void): void {
  let callbacks = bySignal.get(signal)
  if (callbacks === undefined) {
    const all = new Set<() => void>()
    const listener = () => {
      for (const callback of all) callback()
    }
    callbacks = { all, listener }
    bySignal.set(signal, callbacks)
    signal.addEventListener('abort', callbacks.listener)
  }
  callbacks.all.add(callback)
}

export function offAbort(signal: Signal, callback: () => void): void {
  const callbacks = bySignal.get(signal)
  if (!callbacks?.all.delete(callback) || callbacks.all.size > 0) return
  bySignal.delete(signal)
  signal.removeEventListener('abort', callbacks.listener)
}
