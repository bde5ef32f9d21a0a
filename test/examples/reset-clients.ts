// Is loaded before a program: each server that the program starts gets a free port and clients that reset at each
// step, and is closed after them. The program must outlive them.
import { type AddressInfo, Server } from 'node:net'
import { resetAtEachStep } from './resets.js'

const requests: string[] = JSON.parse(process.env.REQUESTS!)
const attacks = new WeakMap<Server, Promise<void>>()
const { listen, close } = Server.prototype

Server.prototype.listen = function (this: Server, ...args: unknown[]) {
  const [first, ...rest] = args
  const own = typeof first === 'object' && first !== null ? { ...first, port: 0 } : 0
  const attack = new Promise<void>((resolve) => this.once('listening', resolve))
    .then(() => resetAtEachStep((this.address() as AddressInfo).port, requests, 2))
    .then(() => {
      console.log('survived')
      setImmediate(() => process.exit()) // a program that does not end by itself
    })
  attacks.set(this, attack)
  return listen.call(this, own as never, ...(rest as []))
} as typeof listen

Server.prototype.close = function (this: Server, ...args: Parameters<typeof close>) {
  const attack = attacks.get(this)
  if (attack === undefined) return close.apply(this, args)
  attack.then(() => close.apply(this, args))
  return this
}
