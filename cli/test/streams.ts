import { Readable, Writable } from 'node:stream'
import { run } from 'millrace-cli/dist/program.js'

// The environment of the tests must not force colour: the streams below say which colours they have.
delete process.env.FORCE_COLOR

/** An output that records its text. With `columns` it is a terminal with the given colour depth. */
export class Recorded extends Writable {
  text = ''
  readonly isTTY?: boolean
  readonly columns?: number

  readonly #depth: number

  constructor(columns?: number, depth = 1) {
    super({ decodeStrings: false })
    this.#depth = depth
    if (columns === undefined) return
    this.isTTY = true
    this.columns = columns
  }

  /** The colour depth in bits, as of a terminal stream of Node.js. */
  getColorDepth(): number {
    return this.#depth
  }

  override _write(chunk: string, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk
    done()
  }
}

export interface Ran {
  code: number
  out: string
  err: string
}

/**
 * Runs a command line in this process. With `columns` its output is a terminal of that width, else a pipe;
 * `depth` is the colour depth in bits.
 */
export async function ran(
  args: string[],
  input: (string | Buffer)[] = [],
  columns?: number,
  depth?: number,
): Promise<Ran> {
  const [stdout, stderr] = [new Recorded(columns, depth), new Recorded(columns, depth)]
  const stdin = Readable.from(
    input.map((part) => Buffer.from(part)),
    { objectMode: false },
  )
  const code = await run(args, { stdin, stdout, stderr })
  return { code, out: stdout.text, err: stderr.text }
}

/** A line of the Combined Log Format, `second` seconds after 14:00. */
export function logged(ip: string, second: number, { user = '-', path = '/' } = {}): string {
  const time = new Date(second * 1_000).toISOString().slice(14, 19)
  return `${ip} - ${user} [09/Mar/2026:14:${time} +0000] "GET ${path} HTTP/1.1" 200 512 "-" "curl/8.9.1"`
}

/** A log in which requests of one client are a second apart. */
export function log(requests: Record<string, number>): string {
  return Object.entries(requests)
    .flatMap(([ip, count]) => Array.from({ length: count }, (_, i) => `${logged(ip, i)}\n`))
    .join('')
}
