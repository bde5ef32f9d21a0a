// Names of hosts that this process resolves by itself, so that a test can take one away.
import dns from 'node:dns'
import { HOST } from './ports.js'

const known = new Set<string>()
const real = { lookup: dns.lookup, promised: dns.promises.lookup }

type Callback = (error: Error | null, address?: unknown, family?: number) => void

/** Makes a name that ends in `.test` resolve to the loopback address. */
export function addName(name: string): void {
  known.add(name)
}

/** From now on the name is not found. */
export function removeName(name: string): void {
  known.delete(name)
}

const isOwn = (name: string): boolean => name.endsWith('.test')

const notFound = (name: string): Error =>
  Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND', syscall: 'getaddrinfo' })

/** What sockets call. */
function lookup(name: string, options: { all?: boolean }, callback: Callback): void {
  if (!isOwn(name)) {
    real.lookup(name, options as dns.LookupAllOptions, callback as never)
    return
  }
  setImmediate(() => {
    if (!known.has(name)) callback(notFound(name))
    else if (options.all) callback(null, [{ address: HOST, family: 4 }])
    else callback(null, HOST, 4)
  })
}

/** What node-redis calls for the address that it has connected to. */
async function promised(name: string, options: dns.LookupOptions): Promise<unknown> {
  if (!isOwn(name)) return real.promised(name, options)
  if (!known.has(name)) throw notFound(name)
  return { address: HOST, family: 4 }
}

Object.assign(dns, { lookup })
Object.assign(dns.promises, { lookup: promised })
