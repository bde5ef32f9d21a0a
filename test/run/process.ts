import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

export interface Ended {
  readonly output: string
  /** The exit code; undefined if a signal killed the process. */
  readonly code: number | undefined
  readonly isTimedOut: boolean
  /** Whether the command was killed because it did not end after its output said that it was done. */
  readonly isLingering: boolean
  /** Command lines of the processes that were still running after the command had exited. */
  readonly left: readonly string[]
  readonly seconds: number
  /** Processor time of the process and its awaited descendants; undefined on Windows. */
  readonly cpuSeconds: number | undefined
}

interface Watch {
  readonly onOutput?: (text: string) => void
  readonly isDone?: RegExp
  readonly lingerMs?: number
}

const IS_POSIX = process.platform !== 'win32'
/** Terminated processes have this long to exit; on an idle machine it takes milliseconds. */
const EXIT_MS = 3_000
const POLL_MS = 20
/** The length of the end of the output that is searched for `isDone`. */
const SUMMARY_SIZE = 500

/**
 * Runs a command and writes the processor time of its descendants to a pipe, because Node does not report it.
 * A watcher reads a second pipe, which closes when this process dies in any way; the watcher then kills the
 * group.
 */
const SCRIPT = `
  (read -r _ <&4; kill -KILL 0) 3>&- & watcher=$!
  "$@" 3>&- 4<&-; code=$?
  kill -KILL $watcher
  times >&3; exit $code`
const WATCHED = ['/bin/sh', '-c', SCRIPT, 'sh']

const groups = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    for (const group of groups) end(group, 'SIGKILL')
    process.kill(process.pid, signal)
  })
}

/**
 * Runs a command in its own process group. When the command exits, the rest of the group is killed. After
 * `limitMs` the group gets SIGTERM, so that a command with process groups of its own can end these, and then
 * SIGKILL; so too if the command still runs `lingerMs` after an output that ends with `isDone`.
 */
export async function runGroup(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  limitMs: number,
  { onOutput, isDone, lingerMs }: Watch = {},
): Promise<Ended> {
  const startedMs = performance.now()
  const [program, ...args] = IS_POSIX ? [...WATCHED, ...command] : command
  const child = spawn(program!, args, {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    detached: IS_POSIX,
    windowsHide: true,
    env,
  })
  groups.add(child)
  let [isTimedOut, isLingering] = [false, false]
  const kill = () => {
    end(child, 'SIGTERM')
    setTimeout(() => end(child, 'SIGKILL'), EXIT_MS).unref()
  }
  const timer = setTimeout(() => {
    isTimedOut = true
    kill()
  }, limitMs)
  let linger: NodeJS.Timeout | undefined
  const output = collect(child, [1, 2], (text) => {
    onOutput?.(text)
    clearTimeout(linger)
    if (!isDone?.test(output().slice(-SUMMARY_SIZE))) return
    linger = setTimeout(() => {
      isLingering = true
      kill()
    }, lingerMs)
  })
  const times = collect(child, [3])
  const closed = new Promise((resolve) => child.on('close', resolve))
  const code = await new Promise<number | undefined>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => resolve(code ?? undefined))
  })
  clearTimeout(timer)
  clearTimeout(linger)
  const left = await membersLeft(child.pid!)
  end(child, 'SIGKILL')
  groups.delete(child)
  await closed
  const seconds = (performance.now() - startedMs) / 1000
  return {
    output: output(),
    code,
    isTimedOut,
    isLingering,
    left: isTimedOut || isLingering ? [] : left,
    seconds,
    cpuSeconds: cpuSecondsIn(times()),
  }
}

function collect(child: ChildProcess, pipes: number[], onText: (text: string) => void = () => {}) {
  let text = ''
  for (const pipe of pipes) {
    const stream = child.stdio[pipe] as NodeJS.ReadableStream
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      onText(chunk)
    })
  }
  return () => text
}

function end({ pid }: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(IS_POSIX ? -pid! : pid!, signal)
  } catch {} // the group has exited
}

/** Command lines of a group's processes that do not exit by themselves. Always empty except on Linux. */
async function membersLeft(group: number): Promise<string[]> {
  const untilMs = performance.now() + EXIT_MS
  for (;;) {
    const members = membersOf(group)
    if (members.length === 0 || performance.now() > untilMs) return members
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function membersOf(group: number): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        if (Number(pgrp) !== group || state === 'Z' || state === 'X') return []
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()]
      } catch {
        return [] // the process has exited meanwhile
      }
    })
}

/** The sum of the output of sh's `times`: its own times and those of its children, each `0m0.05s 0m0.01s`. */
function cpuSecondsIn(times: string): number | undefined {
  const parts = [...times.matchAll(/(\d+)m([\d.]+)s/g)]
  if (parts.length === 0) return undefined
  return parts.reduce((sum, [, minutes, seconds]) => sum + 60 * Number(minutes) + Number(seconds), 0)
}
