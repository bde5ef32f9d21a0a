/** The load of the case `in-situ`: wrk if it is installed, else autocannon, which takes more of the machine. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { KEY_HEADER } from './handlers.js'
import { CONNECTIONS, load } from './load.js'

/** The keys of the requests, one after the other. */
export const IN_SITU_KEYS = 5_000

const hasWrk = (): boolean => spawnSync('wrk', ['--version']).error === undefined

export const clientName = (): string =>
  `${hasWrk() ? 'wrk' : 'autocannon'}, ${CONNECTIONS} connections, ${IN_SITU_KEYS.toLocaleString('en')} keys`

/** Loads a server on this machine. @throws Error for any response that is not 2xx */
export async function loadInSitu(port: number, durationMs: number): Promise<void> {
  if (hasWrk()) await loadByWrk(port, Math.ceil(durationMs / 1_000))
  else await load(port, durationMs, IN_SITU_KEYS)
}

const SCRIPT = `
local requests, n = {}, 0
init = function()
  for i = 1, ${IN_SITU_KEYS} do
    requests[i] = wrk.format('GET', '/', { ['${KEY_HEADER}'] = 'user:' .. (1000000 + i) })
  end
end
request = function()
  n = n % ${IN_SITU_KEYS} + 1
  return requests[n]
end
`

async function loadByWrk(port: number, seconds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-in-situ-'))
  try {
    const script = join(folder, 'keys.lua')
    writeFileSync(script, SCRIPT)
    const options = [
      '-t1',
      `-c${CONNECTIONS}`,
      `-d${seconds}s`,
      '--timeout',
      '30s',
      '-s',
      script,
      `http://127.0.0.1:${port}/`,
    ]
    const wrk = spawn('wrk', options, { stdio: ['ignore', 'pipe', 2] })
    const [output, [code]] = await Promise.all([text(wrk.stdout!), once(wrk, 'exit')])
    if (code !== 0 || /Non-2xx|Socket errors/.test(output))
      throw new Error(`wrk ended with ${code}: ${output}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
