// The timers as they are when the package is loaded, also for modules that are loaded later: fake timers of a test don't
// stop what the package does in the background.
export const { clearTimeout, queueMicrotask, setImmediate, setTimeout } = globalThis
