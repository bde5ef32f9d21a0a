/**
 * The global `AbortSignal`. A program that is compiled without the types of Node.js and of the DOM has no
 * such type. There it is the common part of both.
 */
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
