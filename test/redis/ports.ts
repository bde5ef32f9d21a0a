import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

export const HOST = '127.0.0.1'
/**
 * Below the ports that systems give to outgoing connections (from 32768 on Linux), so that no connection
 * takes the port of a server that is about to start again.
 */
const PORTS = [12_000, 32_000] as const
const ATTEMPTS = 100

/** A file for each port that a process of the tests has: its server may be down for now, and the port look free. */
const TAKEN = join(tmpdir(), `millrace-test-ports-${userInfo().uid}`)
const own = new Set<string>()
process.once('exit', () => {
  for (const file of own) rmSync(file, { force: true })
})

/** A port on which no one listens, and which no other test has. Another program may take it before the caller does. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(...PORTS)
    if (takes(port) && (await isFree(port))) return port
  }
  throw new Error('no free port')
}

function takes(port: number): boolean {
  mkdirSync(TAKEN, { recursive: true })
  const file = join(TAKEN, `${port}`)
  try {
    writeFileSync(file, `${process.pid}`, { flag: 'wx' })
    own.add(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (!own.has(file) && !isRunning(file)) rmSync(file, { force: true }) // of a process that was killed
    return false
  }
}

/** Whether the process that has taken a port runs. One that is just writing its number does. */
function isRunning(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, 'utf8'))
    return pid === 0 || process.kill(pid, 0)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH' || code === 'ENOENT') return false
    if (code === 'EPERM') return true
    throw error
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, HOST)
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
