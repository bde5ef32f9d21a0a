// Preloaded into every thread (`node --import`), where it waits for an order to die. The shipped code is
// unchanged: a thread dies at one of its calls of `Atomics`, which are its steps in shared memory.
import { getEnvironmentData, isMainThread } from 'node:worker_threads'
import { AT_START, type Inside, mannerOf, NOW, ORDERS, STEPS, TAKEN } from './order.js'

const memory = getEnvironmentData(ORDERS)
if (!isMainThread && memory instanceof SharedArrayBuffer) obey(new Int32Array(memory))

function obey(orders: Int32Array): void {
  const { load, compareExchange, add } = Atomics
  /** Steps until death, after an order was taken. */
  let stepsLeft = 0
  let manner: Inside | undefined

  const take = (index: number): Inside | undefined => {
    const order = load(orders, index)
    if (order === 0 || compareExchange(orders, index, order, 0) !== order) return undefined
    add(orders, TAKEN, 1)
    return mannerOf(order)
  }
  const step = (): void => {
    if (manner === undefined) {
      manner = take(NOW)
      stepsLeft = load(orders, STEPS)
    }
    if (manner === undefined || stepsLeft-- > 0) return
    const now = manner
    manner = undefined // a thread that throws may survive
    die(now)
  }

  const atStart = take(AT_START)
  if (atStart !== undefined) die(atStart)
  for (const name of ['load', 'store', 'compareExchange', 'add', 'sub', 'and', 'or', 'notify'] as const) {
    const original = Atomics[name] as (...args: unknown[]) => unknown
    const stepped = (words: unknown, index: unknown, a: unknown, b: unknown): unknown => {
      step()
      return original(words, index, a, b)
    }
    Object.defineProperty(Atomics, name, { value: stepped })
  }
}

function die(manner: Inside): void {
  if (manner === 'exit') process.exit(3)
  if (manner === 'throw') throw new Error('ordered to throw')
  const kept: unknown[] = []
  for (;;) kept.push(branch(10))
}

/**
 * 2^depth arrays. It is recursive, because every function call checks whether the thread must end. Maglev's
 * code for an endless loop of built-in functions does not check (Node.js 24 and 26): such a thread outlives
 * its memory limit and `terminate()`.
 */
const branch = (depth: number): unknown[] => (depth === 0 ? [] : [branch(depth - 1), branch(depth - 1)])
