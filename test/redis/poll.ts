const INTERVAL_MS = 20
/** On an idle machine the longest wait, a failover, takes 3 seconds. */
const MAX_WAIT_MS = Number(process.env.MILLRACE_TEST_WAIT_MS ?? 60_000)

/** Asks a server until the answer is true. For states that it announces by no event. */
export async function poll(isSo: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
  }
}
