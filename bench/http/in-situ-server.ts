/**
 * A server process of the case `in-situ`. `in-situ.ts` starts it with the names of a server and of a mode. On
 * the message `{ slices }` it serves that many slices of time, by its baseline (mode 0) and by the mode (1)
 * in turn, and sends what they took.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { BASELINE, IN_SITU_SERVERS, type Mode, type ServerName } from './in-situ-modes.js'
import { type Listening, SLICE_MS, type Slice } from './in-situ-slices.js'

/** The part of a slice that does not count: caches and predictors adapt to the new mode. */
const SETTLE_MS = 20

const [name, modeName] = process.argv.slice(2)
const { baseline, modes } = IN_SITU_SERVERS[name as ServerName]
const listeners: RequestListener[] = []
const measured = modeName === BASELINE ? baseline : (modes as Record<string, Mode>)[modeName!]!
for (const make of [baseline, measured]) listeners.push(await make())

let serve = listeners[0]!
let requests = 0
const server = createServer((request, response) => {
  requests++
  serve(request, response)
})

process.once('disconnect', () => process.exit())
process.once('message', async ({ slices }: { slices: number }) => {
  const all: Slice[] = []
  for (let i = 0; i < slices; i++) all.push(await measureSlice(i))
  process.send!(all)
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.send!({ port } satisfies Listening)
})

/** Neither mode always comes first: baseline, mode, mode, baseline. */
async function measureSlice(i: number): Promise<Slice> {
  const mode = ((i + 1) >> 1) & 1
  serve = listeners[mode]!
  await after(SETTLE_MS)
  const before = requests
  const cpuBefore = process.cpuUsage()
  await after(SLICE_MS - SETTLE_MS)
  const { user, system } = process.cpuUsage(cpuBefore)
  return { mode, requests: requests - before, cpuUs: user + system }
}
