// Names of hosts that this process resolves by itself, so that a test can take one away.
import dns from 'node:dns'
import { HOST } from './ports.js'

const known = new Set<string>()
/** Look-ups that wait, while they are held. */
let held: (() => void)[] | undefined
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

/** From now on no look-up of such a name ends, until what this returns is called. */
export function holdNames(): { readonly waiting: () => number; readonly release: () => void } {
  const waiting: (() => void)[] = []
  held = waiting
  return {
    waiting: () => waiting.length,
    release() {
      held = undefined
      for (const answer of waiting.splice(0)) answer()
    },
  }
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
  const answer = (): void => {
    if (!known.has(name)) callback(notFound(name))
    else if (options.all) callback(null, [{ address: HOST, family: 4 }])
    else callback(null, HOST, 4)
  }
  if (held) held.push(answer)
  else setImmediate(answer)
}

/** What node-redis calls for the address that it has connected to. */
async function promised(name: string, options: dns.LookupOptions): Promise<unknown> {
  if (!isOwn(name)) return real.promised(name, options)
  if (!known.has(name)) throw notFound(name)
  return { address: HOST, family: 4 }
}

Object.assign(dns, { lookup })
Object.assign(dns.promises, { lookup: promised })
