import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { serve } from './serve.js'

/** The streams of the process that the command uses. */
export interface Environment {
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
}

/** `millrace serve`. Resolves to the exit code. */
export async function run(args: readonly string[], { stdout }: Environment): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { limit: { type: 'string' }, host: { type: 'string' }, port: { type: 'string' } },
  })
  const { limit = '', host = '127.0.0.1', port = '8080' } = values
  const { url, close } = await serve({ limit, host, port: Number(port) })
  stdout.write(`listening on ${url}\n`)
  await once(process, 'SIGTERM')
  await close()
  return 0
}
