// The other side of thread.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, createLimiter, group, MillraceError, MillraceLimited } from 'millrace'
import { type Call, isPlainObject, type Reply, type Sent, type Settled, type Thrown } from './thread.js'

const { port, signal } = workerData
const abortController = () => new AbortController()
const objects: object[] = [{ attachLimiter, createLimiter, group, abortController }] // at the index LIBRARY
let promises = 0

port.on('message', (call: Call) => {
  port.postMessage(replyTo(call))
  Atomics.store(signal, 0, 1)
  Atomics.notify(signal, 0)
})

function replyTo({ object, property, args }: Call): Reply {
  try {
    const owner = objects[object] as Record<string, unknown>
    const value = owner[property]
    if (typeof value !== 'function') return { value: send(value) }
    if (args === undefined) return { isMethod: true }
    return { value: send(value.apply(owner, args.map(receive))) }
  } catch (error) {
    return { thrown: sendThrown(error) }
  }
}

function send(value: unknown): Sent {
  if (value instanceof Promise) return sendPromise(value)
  if (Array.isArray(value)) return { list: value.map(send) }
  if (isPlainObject(value)) return { fields: Object.entries(value).map(([name, each]) => [name, send(each)]) }
  if (typeof value !== 'object' || value === null || isMemory(value)) return { plain: value }
  return { object: objects.push(value) - 1 }
}

function sendPromise(value: Promise<unknown>): Sent {
  const promise = promises++
  const settle = (settled: Settled) => parentPort!.postMessage(settled)
  value.then(
    (result) => settle({ promise, value: send(result) }),
    (error) => settle({ promise, thrown: sendThrown(error) }),
  )
  return { promise }
}

const isMemory = (value: object) => ArrayBuffer.isView(value) || value instanceof SharedArrayBuffer

function receive(sent: Sent): unknown {
  if ('plain' in sent) return sent.plain
  if ('list' in sent) return sent.list.map(receive)
  if ('fields' in sent) return Object.fromEntries(sent.fields.map(([name, each]) => [name, receive(each)]))
  if ('object' in sent) return objects[sent.object]
  throw new Error('a promise as an argument')
}

const FIELDS = ['name', 'message', 'code', 'option', 'expected', 'value', 'decision'] as const

function sendThrown(error: unknown): Thrown {
  const isOwn = error instanceof MillraceError || error instanceof MillraceLimited
  if (!isOwn) return { value: error instanceof Error ? { plain: error } : send(error) }
  const fields = FIELDS.filter((name) => name in error).map(
    (name) => [name, send((error as unknown as Record<string, unknown>)[name])] as const,
  )
  return { error: error.name, fields }
}
