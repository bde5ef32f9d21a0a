// Registers limiters in a thread, uses them, closes them: for `orders.test.ts`. As a program, a thread that does what its
// messages say.
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { createLimiter, type Limiter } from 'millrace'
import { observe, register } from 'millrace/metrics'
import { Registry } from 'prom-client'

export type Place = 'one' | 'two' | 'meter'
export type Order =
  | { readonly kind: 'open' | 'close' | 'end'; readonly id: number }
  | { readonly kind: 'register'; readonly id: number; readonly name: string; readonly place: Place }
  | { readonly kind: 'decide'; readonly id: number; readonly times: number }

export class Actor {
  readonly one = new Registry()
  readonly #two = new Registry()
  readonly #limiters = new Map<number, Limiter>()
  readonly #ends = new Map<number, (() => Promise<void>)[]>()

  async act(order: Order): Promise<void> {
    const { id } = order
    if (order.kind === 'open') this.#limiters.set(id, createLimiter({ limit: 3, window: '1h', maxKeys: 100 }))
    const limiter = this.#limiters.get(id)!
    if (order.kind === 'register') this.#register(id, { [order.name]: limiter }, order.place)
    if (order.kind === 'decide') for (let i = 0; i < order.times; i++) limiter.check('key')
    if (order.kind === 'close') await limiter.close()
    if (order.kind === 'end') await Promise.all(this.#ends.get(id)!.map((end) => end()))
  }

  #register(id: number, limiters: Record<string, Limiter>, place: Place): void {
    const end =
      place === 'meter' ? observe(limiters) : register(limiters, { one: this.one, two: this.#two }[place])
    this.#ends.set(id, [...(this.#ends.get(id) ?? []), end])
  }
}

if (!isMainThread && workerData === 'actor') {
  const actor = new Actor()
  const port = parentPort!
  port.on('message', (order: Order | 'leave' | 'exit') => {
    if (order === 'exit') process.exit()
    if (order === 'leave') port.close()
    else void actor.act(order).then(() => port.postMessage('done'))
  })
  port.postMessage('ready')
}
