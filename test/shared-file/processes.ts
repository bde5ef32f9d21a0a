// Processes that share a file: the test's side. Each is a real one, started by fork.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Limiter, LimiterOptions } from 'millrace'

/** A machine as a process is to believe it is on. */
export interface MachineState {
  /** A UUID; anything else is a system that does not name its boots. */
  bootId: string
  upMs: number
  wallMs: number
  /** How far the kernel says that the wall clock may be wrong: 0, unless said; null: it does not vouch for it at all. */
  wallErrorMs?: number | null
}

export type Order =
  | { do: 'open'; options: LimiterOptions; machine?: MachineState }
  | { do: 'turn'; machine: Partial<MachineState> }
  | { do: 'check'; key: string; times: number }
  | { do: 'call'; method: keyof Limiter; args: unknown[] }
  | { do: 'die at'; state: number }

export interface Answer {
  value?: unknown
  error?: { code: string; option: string; message: string }
}

/** What another process raised. */
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
    // Only while something is awaited of it: a test that fails ends.
    member.child.unref()
    member.child.channel?.unref()
    return member
  }

  async tell(order: Order): Promise<unknown> {
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

  open(options: LimiterOptions, machine?: MachineState): Promise<unknown> {
    return this.tell({ do: 'open', options, ...(machine && { machine }) })
  }

  /** How many of so many units were admitted. */
  check(key: string, times: number): Promise<number> {
    return this.tell({ do: 'check', key, times }) as Promise<number>
  }

  call(method: keyof Limiter, ...args: unknown[]): Promise<unknown> {
    return this.tell({ do: 'call', method, args })
  }

  /** Resolves with the signal by which it ended. */
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

/** A folder for a test file's files, gone when it ends. */
export function folder(): (name: string) => string {
  const made = mkdtempSync(join(tmpdir(), 'millrace-shared-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  return (name) => join(made, name)
}

/** Members that live as long as `use` takes. */
export async function withMembers(count: number, use: (members: Member[]) => Promise<void>): Promise<void> {
  const members = await Promise.all(Array.from({ length: count }, () => Member.start()))
  try {
    await use(members)
  } finally {
    await Promise.all(members.map((member) => member.kill()))
  }
}
