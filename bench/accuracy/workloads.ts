/** The traffic on which the algorithms are compared with an exact log. It is the same in every run. */
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { parseKey } from 'millrace-cli/dist/replay/keys.js'
import { readTraffic, type Traffic } from 'millrace-cli/dist/replay/traffic.js'
import { Progress } from 'millrace-cli/dist/terminal.js'
import { random } from '../random.js'
import type { Limited } from './variants.js'

export interface Workload extends Limited {
  readonly name: string
  traffic(): Traffic | Promise<Traffic>
}

/** The access log of the repository. */
export const EXAMPLE_LOG = fileURLToPath(new URL('../../../examples/access.log', import.meta.url))

const LIMIT = 100
const WINDOW_MS = 60_000
const HOUR_MS = 3_600_000
/** A whole number of windows, so that a fixed window begins here. */
const START_MS = Date.UTC(2026, 0, 1)
const CLIENTS = 10
const WINDOWS = 30
const BURSTS = 20
/** A burst lasts for half a second. */
const BURST_MS = 500

/** What the clients of one workload request, each by its moments. */
export function trafficOf(momentsOf: readonly (readonly number[])[]): Traffic {
  return {
    clients: momentsOf.map((_, number) => `client ${number}`),
    atMs: momentsOf.flat(),
    client: momentsOf.flatMap((moments, number) => moments.map(() => number)),
  }
}

/** The traffic of each client by a sequence of random numbers of its own. */
function ofClients(moments: (next: () => number) => number[]): Traffic {
  const seeds = Array.from({ length: CLIENTS }, (_, number) => 0x9e3779b9 * (number + 1))
  return trafficOf(seeds.map((seed) => moments(random(seed))))
}

/**
 * A request opens a window. At the end of that window the limit is used, and again at the beginning of the next
 * one. Then the client pauses, so that its next window begins with the clock's, too.
 */
export function boundaryBursts(next: () => number): number[] {
  const moments: number[] = []
  for (let burst = 0; burst < BURSTS; burst++) {
    const openedMs = START_MS + 3 * burst * WINDOW_MS
    moments.push(openedMs)
    for (let i = 0; i < 2 * LIMIT; i++) {
      const fromMs = openedMs + WINDOW_MS - (i < LIMIT ? BURST_MS : 0)
      moments.push(fromMs + Math.floor(next() * BURST_MS))
    }
  }
  return moments.sort((a, b) => a - b)
}

/** Requests at a share of the limit, each at a random moment of its own part of the time. */
export function steady(share: number, next: () => number): number[] {
  const apartMs = WINDOW_MS / (LIMIT * share)
  const phaseMs = next() * WINDOW_MS
  return Array.from({ length: Math.floor((WINDOWS * WINDOW_MS) / apartMs) }, (_, i) => {
    return START_MS + Math.floor(phaseMs + (i + next()) * apartMs)
  })
}

/** For a fifth to one and a half windows three times the limit, then a pause of a fifth to two windows. */
export function onAndOff(next: () => number): number[] {
  const moments: number[] = []
  const between = (least: number, most: number) => (least + next() * (most - least)) * WINDOW_MS
  let atMs = START_MS + next() * WINDOW_MS
  while (atMs < START_MS + WINDOWS * WINDOW_MS) {
    const pauseMs = atMs + between(0.2, 1.5)
    const apartMs = WINDOW_MS / (3 * LIMIT)
    for (; atMs < pauseMs; atMs += apartMs) moments.push(Math.floor(atMs + next() * apartMs))
    atMs += between(0.2, 2)
  }
  return moments
}

/** The requests of an access log, by address. */
async function logged(file: string): Promise<Traffic> {
  const silent = new Progress(new Writable())
  return (await readTraffic(file, { key: parseKey('ip') }, process.stdin, silent)).traffic
}

/** The workloads, with this access log as the first two. */
export function workloads(log: string): readonly Workload[] {
  const generated = { limit: LIMIT, windowMs: WINDOW_MS }
  return [
    { name: 'access log, 10 a minute', limit: 10, windowMs: WINDOW_MS, traffic: () => logged(log) },
    { name: 'access log, 20 an hour', limit: 20, windowMs: HOUR_MS, traffic: () => logged(log) },
    { ...generated, name: 'bursts at boundaries', traffic: () => ofClients(boundaryBursts) },
    ...[50, 99, 101, 200].map((percent) => ({
      ...generated,
      name: `steady, ${percent} %`,
      traffic: () => ofClients((next) => steady(percent / 100, next)),
    })),
    { ...generated, name: 'on and off', traffic: () => ofClients(onAndOff) },
  ]
}
