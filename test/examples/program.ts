// Runs an example in its own process, as a user would.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'

const TIME_LIMIT_MS = 60_000

/** The path of an example; this file runs as build/test/examples/program.js. */
export function example(name: string): string {
  return fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url))
}

/**
 * Starts a program on free ports and calls `use` with the `count` addresses that it prints. Then ends it with
 * `signal`, and expects a clean exit without output on stderr, unless it may complain.
 */
export async function withServers(
  file: string,
  count: number,
  use: (addresses: string[]) => Promise<void>,
  signal: NodeJS.Signals = 'SIGTERM',
  { mayComplain = false, env = {} }: { mayComplain?: boolean; env?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIME_LIMIT_MS,
  })
  let complaints = ''
  child.stderr.on('data', (chunk) => (complaints += chunk))
  const closed = once(child, 'close')
  try {
    const addresses: string[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      addresses.push(/http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? assert.unreachable(line)!)
      if (addresses.length === count) break
    }
    assert.is(addresses.length, count, `it ended early:\n${complaints}`)
    await use(addresses)
    child.kill(signal)
    assert.equal(await closed, [0, null], complaints)
    if (!mayComplain) assert.is(complaints, '')
  } finally {
    if (child.exitCode === null) child.kill('SIGKILL')
    await closed
  }
}

/** The number of responses with this status. */
export function countOf(responses: Response[], status: number): number {
  return responses.filter((response) => response.status === status).length
}

/** Asserts a refusal whose Retry-After is a whole number of seconds, at most `most`. */
export function assertRefused(response: Response, mostSeconds: number): void {
  assert.is(response.status, 429)
  const seconds = Number(response.headers.get('Retry-After'))
  assert.ok(
    Number.isInteger(seconds) && seconds >= 1 && seconds <= mostSeconds,
    `Retry-After: ${response.headers.get('Retry-After')}`,
  )
}
