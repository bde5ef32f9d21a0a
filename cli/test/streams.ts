import { Readable, Writable } from 'node:stream'
import { run } from 'millrace-cli/dist/program.js'

// Whoever runs the tests may want colour; what is tested here is what the terminals below say of themselves.
delete process.env.FORCE_COLOR

/** An output that keeps what is written to it; with `columns` it is a terminal, which knows as many colours as asked for. */
export class Kept extends Writable {
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

  /** In bits, as a terminal of Node.js tells it. */
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
 * Runs a command line in this process. `columns`: how wide its terminal is, for want of which its output is piped;
 * `depth`: in how many bits it shows colour.
 */
export async function ran(
  args: string[],
  input: (string | Buffer)[] = [],
  columns?: number,
  depth?: number,
): Promise<Ran> {
  const [stdout, stderr] = [new Kept(columns, depth), new Kept(columns, depth)]
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

/** A whole log; requests of one client are a second apart. */
export function log(requests: Record<string, number>): string {
  return Object.entries(requests)
    .flatMap(([ip, count]) => Array.from({ length: count }, (_, i) => `${logged(ip, i)}\n`))
    .join('')
}
