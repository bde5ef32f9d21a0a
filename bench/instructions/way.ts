/**
 * The functions of this package that each admitted request calls: how much bytecode they are, and which of them V8 inlines
 * into others once the server is warm.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { sendRequests } from './client.js'

const SERVER = fileURLToPath(new URL('./server.js', import.meta.url))
/** The library as it is run: in `build/lib` or `dist`. */
const ROOT = new URL('../../../', import.meta.url).pathname
/** Few clients: their first requests take another way. */
const KEYS = 20
const FEW = 200
const MORE = 1_200
/** Of the requests between the two numbers: a function that serves as many of them is on the way. */
const MOST = 0.9
const WARM = 3_000

/** A function on the way of a request. */
export interface WayFunction {
  readonly name: string
  /** Bytes of its bytecode. */
  readonly bytes: number
  /** Whether V8 has inlined it into another function of the way. */
  readonly isInlined: boolean
}

/** The functions on the way of an admitted request of a server, the largest first. */
export async function wayOf(framework: string, mode: string): Promise<WayFunction[]> {
  const before = await coveredIn(framework, mode, FEW)
  const after = await coveredIn(framework, mode, MORE)
  const { sizes, inlined } = await compiledIn(framework, mode)
  const callsBefore = new Map(before.map((each) => [placeOf(each), each.calls]))
  const way = after.filter(
    (each) => each.calls - (callsBefore.get(placeOf(each)) ?? 0) >= MOST * (MORE - FEW),
  )
  const names = new Set(way.map(({ name }) => name))
  return way
    .map((each) => ({
      name: each.name,
      bytes: sizes.find((size) => innermost(after, size) === each)?.bytes ?? 0,
      isInlined: inlined.some(({ callee, caller }) => callee === each.name && names.has(caller)),
    }))
    .sort((a, b) => b.bytes - a.bytes)
}

/** A function of a script, and how often it was called. */
interface Covered {
  readonly path: string
  readonly name: string
  readonly start: number
  readonly end: number
  readonly calls: number
}

const placeOf = ({ path, start, end }: Covered): string => `${path}:${start}:${end}`

/** The function that contains a place in a script, and no smaller one does. */
const innermost = (functions: readonly Covered[], at: Place): Covered | undefined =>
  functions
    .filter(({ path, start, end }) => path === at.path && start <= at.offset && at.offset < end)
    .sort((a, b) => a.end - a.start - (b.end - b.start))[0]

/** Runs a server with the coverage of V8, whose counters would add to the bytecode. */
function coveredIn(framework: string, mode: string, requests: number): Promise<Covered[]> {
  return inFolder(async (folder) => {
    await serve(framework, mode, requests, [], { NODE_V8_COVERAGE: folder })
    return readdirSync(folder).flatMap((file) => functionsIn(readFileSync(join(folder, file), 'utf8')))
  })
}

interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly {
        readonly startOffset: number
        readonly endOffset: number
        readonly count: number
      }[]
    }[]
  }[]
}

const functionsIn = (json: string): Covered[] =>
  (JSON.parse(json) as Coverage).result
    .filter(({ url }) => isOwn(url))
    .flatMap(({ url, functions }) =>
      functions.map(({ functionName: name, ranges }) => {
        const { startOffset: start, endOffset: end, count: calls } = ranges[0]!
        return { path: pathOf(url), name, start, end, calls }
      }),
    )

/** Where a function begins, and how large its bytecode is. */
interface Place {
  readonly path: string
  readonly offset: number
}
interface Size extends Place {
  readonly bytes: number
}
interface Inlined {
  readonly callee: string
  readonly caller: string
}

/** Runs a server with the log of V8. */
function compiledIn(framework: string, mode: string): Promise<{ sizes: Size[]; inlined: Inlined[] }> {
  return inFolder(async (folder) => {
    const log = join(folder, 'v8.log')
    const logging = ['--log-code', `--logfile=${log}`, '--no-logfile-per-isolate', '--trace-turbo-inlining']
    const options = [...logging, '--single-threaded', '--predictable'] // else it depends on when V8 compiles
    const lines = await serve(framework, mode, WARM, options, {})
    return { sizes: sizesIn(readFileSync(log, 'utf8')), inlined: lines.flatMap(inlinedIn) }
  })
}

/** The bytecode of the functions in a log, which V8 marks by `~`. */
export function sizesIn(log: string): Size[] {
  const starts = new Map<string, number[]>()
  return log.split('\n').flatMap((line) => {
    const [, bytes, url, row, column] =
      /^code-creation,\w+,\d+,\d+,0x\w+,(\d+),.*?(\S+):(\d+):(\d+),0x\w+,~$/.exec(line) ?? []
    if (url === undefined || !isOwn(url)) return []
    const path = pathOf(url)
    const rows = starts.get(path) ?? rowsOf(path)
    starts.set(path, rows)
    return [{ path, offset: rows[Number(row) - 1]! + Number(column) - 1, bytes: Number(bytes) }]
  })
}

/** Where the lines of a file begin. */
function rowsOf(path: string): number[] {
  const starts = [0]
  for (const line of readFileSync(path, 'utf8').split('\n')) starts.push(starts.at(-1)! + line.length + 1)
  return starts
}

/** What a line of `--trace-turbo-inlining` says. */
export function inlinedIn(line: string): Inlined[] {
  const names = /^Inlining .*?<SharedFunctionInfo (.*?)>\} into .*?<SharedFunctionInfo (.*?)>\}/.exec(line)
  return names === null ? [] : [{ callee: names[1]!, caller: names[2]! }]
}

const pathOf = (url: string): string => (url.startsWith('file:') ? fileURLToPath(url) : url)

/** Whether a script is of this package, and not of its benchmark. */
const isOwn = (url: string): boolean =>
  url.includes(ROOT) && !url.includes('/node_modules/') && !url.includes('/bench/')

async function inFolder<T>(act: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-way-'))
  try {
    return await act(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Serves so many requests. Returns what the server has printed. */
async function serve(
  framework: string,
  mode: string,
  requests: number,
  options: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const args = [...options, SERVER, framework, mode]
  const server = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 2],
  })
  const lines: string[] = []
  try {
    const port = await portOf(server, lines)
    await sendRequests(port, requests, KEYS)
    server.kill('SIGTERM')
    await once(server, 'close')
    return lines
  } finally {
    server.kill('SIGKILL')
  }
}

/** The port that a server prints, to the same stream as V8. */
function portOf(server: ChildProcess, lines: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    createInterface(server.stdout!).on('line', (line) => {
      lines.push(line)
      if (/^\d+$/.test(line)) resolve(Number(line))
    })
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
  })
}
