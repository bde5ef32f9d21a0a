// Real processes that share a file, started by fork: the test's side.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Limiter, LimiterOptions, RulesLimiterOptions } from 'millrace'

/** The machine that a process observes. */
export interface MachineState {
  /** A UUID; another value simulates a system without boot names. */
  bootId: string
  upMs: number
  wallMs: number
  /** The kernel's error bound of the wall clock; null if it gives none. @default 0 */
  wallErrorMs?: number | null
}

export type Order =
  | { do: 'open'; options: LimiterOptions | RulesLimiterOptions; machine?: MachineState }
  | { do: 'turn'; machine: Partial<MachineState> }
  | { do: 'check'; key: string; times: number }
  | { do: 'call'; method: keyof Limiter; args: unknown[] }
  | { do: 'rules' }
  | { do: 'die at'; state: number }
  | { do: 'die converting' }

export interface Answer {
  value?: unknown
  error?: { code: string; option: string; message: string }
}

/** An error that another process raised. */
export class ErrorThere extends Error {
  readonly code: string
  readonly option: string
  constructor({ code, option, message }: NonNullable<Answer['error']>) {
    super(message)
    this.code = code
    this.option = option
  }
}

const MEMBER = fileURLToPath(new URL('./member.js', import.meta.url))
const started = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of started) child.kill('SIGKILL')
})

export class Member {
  readonly child: ChildProcess
  readonly #ended: Promise<unknown[]>

  private constructor(child: ChildProcess) {
    this.child = child
    this.#ended = once(child, 'exit')
    started.add(child)
  }

  static async start(execArgv: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Member> {
    const member = new Member(fork(MEMBER, { execArgv, env: { ...process.env, ...env } }))
    await once(member.child, 'message')
    // Referenced only while a reply is pending, so that a failed test can exit.
    member.child.unref()
    member.child.channel?.unref()
    return member
  }

  async request(order: Order): Promise<unknown> {
    this.child.ref()
    this.child.channel?.ref()
    this.child.send(order)
    const answer = (await Promise.race([
      once(this.child, 'message').then(([message]) => message),
      this.#ended.then(([code, signal]) => ({
        error: { code: 'ENDED', option: '', message: `${code} ${signal}` },
      })),
    ])) as Answer
    this.child.unref()
    this.child.channel?.unref()
    if (answer.error) throw new ErrorThere(answer.error)
    return answer.value
  }

  open(options: LimiterOptions | RulesLimiterOptions, machine?: MachineState): Promise<unknown> {
    return this.request({ do: 'open', options, ...(machine && { machine }) })
  }

  /** Makes `count` requests and returns the number of admissions. */
  check(key: string, times: number): Promise<number> {
    return this.request({ do: 'check', key, times }) as Promise<number>
  }

  call(method: keyof Limiter, ...args: unknown[]): Promise<unknown> {
    return this.request({ do: 'call', method, args })
  }

  /** Resolves with the signal that ended the process. */
  async ended(): Promise<unknown> {
    this.child.ref()
    const [, signal] = await this.#ended
    started.delete(this.child)
    return signal
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.ended()
  }
}

/** A temporary folder for a test file, removed at its end. */
export function folder(): (name: string) => string {
  const made = mkdtempSync(join(tmpdir(), 'millrace-shared-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  return (name) => join(made, name)
}

/** Starts member processes for the duration of `use`. */
export async function withMembers(count: number, use: (members: Member[]) => Promise<void>): Promise<void> {
  const members = await Promise.all(Array.from({ length: count }, () => Member.start()))
  try {
    await use(members)
  } finally {
    await Promise.all(members.map((member) => member.kill()))
  }
}
