// run: full
// What V8 has optimized in the first 2,000 requests stays optimized: a way that is first taken later costs a server
// the optimizing of all functions that contain it once more. The clients and the ticks of these requests are as mixed
// as later ones.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sendRequests } from '../../bench/instructions/client.js'
import { type FrameworkName, OWN_MODES } from '../../bench/instructions/servers.js'

const SERVER = fileURLToPath(new URL('../../bench/instructions/server.js', import.meta.url))
/** The library as it is run: in `build/lib` or `dist`. */
const ROOT = new URL('../../../', import.meta.url).pathname
const WARM = 2_000
const MORE = 15_000
const KEYS = 199
/** A tick of a tenth of a second, so that the first requests meet new ones. */
const WINDOW_MS = 6_000

/** Where optimized code was given up: `.../build/lib/engines/inline/inline.js:214:47`. */
async function givenUp(framework: FrameworkName, mode: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-optimized-'))
  const log = join(folder, 'v8.log')
  const options = ['--log-deopt', `--logfile=${log}`, '--no-logfile-per-isolate']
  const args = [...options, SERVER, framework, mode, String(WINDOW_MS)]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 2] })
  try {
    const exit = once(server, 'exit')
    const port = await new Promise<number>((resolve, reject) => {
      // V8 writes to the same stream.
      createInterface(server.stdout!).on('line', (line) => /^\d+$/.test(line) && resolve(Number(line)))
      exit.then(([code]) => reject(new Error(`the server ended with ${code}`)))
    })
    await sendRequests(port, WARM, KEYS)
    const { size } = statSync(log)
    await sendRequests(port, MORE, KEYS)
    server.kill('SIGTERM')
    await exit
    return readFileSync(log).subarray(size).toString('utf8').split('\n').flatMap(ownPlace)
  } finally {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The place of a line of the log, if it is one of ours: the first of those that are inlined in each other. */
function ownPlace(line: string): string[] {
  const place = /^code-deopt,.*?<([^>]*)>/.exec(line)?.[1]
  return place?.includes(ROOT) && !place.includes('/node_modules/') ? [place] : []
}

const MODES: readonly (readonly [FrameworkName, string])[] = [
  ...OWN_MODES.map((mode) => ['node:http', mode] as const),
  ['Express', OWN_MODES[0]!],
  ['Fastify', OWN_MODES[0]!],
]

for (const [framework, mode] of MODES)
  test(`${framework}, ${mode}: nothing is optimized twice after ${WARM} requests`, async () => {
    const once = await givenUp(framework, mode)
    // V8 compiles on a thread of its own: what a machine in a hurry has not compiled by then is met again by chance.
    const twice = once.length === 0 ? [] : await givenUp(framework, mode)
    assert.equal(
      once.filter((place) => twice.includes(place)),
      [],
    )
  })

test.run()
