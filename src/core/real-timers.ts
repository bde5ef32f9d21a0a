// The timers as they are when the package is loaded, also for modules that are loaded later: fake timers of a test don't
// stop what the package does in the background.
export const { clearInterval, clearTimeout, queueMicrotask, setImmediate, setInterval, setTimeout } =
  globalThis
