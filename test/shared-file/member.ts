// A process that shares a file. It executes requests from IPC with the built package.

import { type Decision, type Limiter, type LimiterOptions, MillraceError, openLimiter } from 'millrace'
import { createLimiterOn } from 'millrace/internal'
import { CONVERTING, HASH } from '#millrace/memory/layout.js'
import type { Machine } from '#millrace/shared-file/machine.js'
import { bootIdOf } from '#millrace/shared-file/machine.js'
import type { Answer, MachineState, Order } from './processes.js'

let limiter: Limiter
const state: MachineState = { bootId: '', upMs: 0, wallMs: 0 }

const machine: Machine = {
  bootId: () => bootIdOf(state.bootId),
  monotonicMs: () => state.upMs,
  uptimeMs: () => state.upMs,
  wallMs: () => state.wallMs,
  wallErrorMs: () => (state.wallErrorMs === null ? Number.POSITIVE_INFINITY : (state.wallErrorMs ?? 0)),
}

process.on('message', (order: Order) => {
  Promise.resolve()
    .then(() => obey(order))
    .then((value) => answer({ value }))
    .catch((error: unknown) => answer(errorOf(error)))
})
process.on('disconnect', () => process.exit())
answer({ value: 'ready' })

function obey(order: Order): unknown {
  switch (order.do) {
    case 'open':
      return open(order.options as LimiterOptions, order.machine) // or of several rules
    case 'turn':
      Object.assign(state, order.machine)
      return undefined
    case 'check': {
      let admitted = 0
      for (let i = 0; i < order.times; i++) if (limiter.check(order.key).allowed) admitted++
      return admitted
    }
    case 'call': {
      const method = limiter[order.method] as (...args: unknown[]) => unknown
      return Promise.resolve(method.apply(limiter, order.args)).then((value) =>
        value !== null && typeof value === 'object' && 'toJSON' in value
          ? (value as Decision).toJSON()
          : value,
      )
    }
    case 'rules':
      return limiter.rules
    case 'die at':
      dieAt(order.state)
      return undefined
    case 'die converting':
      dieConverting()
      return undefined
  }
}

async function open(options: LimiterOptions, given: MachineState | undefined): Promise<void> {
  Object.assign(state, given)
  limiter = given === undefined ? await openLimiter(options) : createLimiterOn(machine, options)
}

/** Kills this process just before it stores an admission word with a given state. */
function dieAt(wayState: number): void {
  const store = Atomics.store
  const dying = (words: Int32Array, index: number, value: number) => {
    if ((value & (3 << 22)) === wayState) process.kill(process.pid, 'SIGKILL')
    return store(words, index, value)
  }
  Atomics.store = dying as typeof Atomics.store
}

/** Kills this process just after it has flipped the name of a cell of record 0, to convert it to record 1. */
function dieConverting(): void {
  const { compareExchange } = Atomics
  const flip = CONVERTING | 1
  const dying = (words: Int32Array, index: number, expected: number, replacement: number) => {
    const found = compareExchange(words, index, expected, replacement)
    const isFlip = (expected & ~HASH) === 0 && replacement === (expected | flip)
    if (isFlip && found === expected) process.kill(process.pid, 'SIGKILL')
    return found
  }
  Atomics.compareExchange = dying as typeof Atomics.compareExchange
}

function errorOf(error: unknown): Answer {
  const message = error instanceof Error ? error.message : String(error)
  return error instanceof MillraceError
    ? { error: { code: error.code, option: error.option, message } }
    : { error: { code: '', option: '', message } }
}

function answer(what: Answer): void {
  process.send!(what)
}
