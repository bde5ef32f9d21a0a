// Signed, expiring tokens of charges. Every engine with the same signing keys takes them.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Receipt } from 'millrace/internal'
import { ServiceError } from '../http/problem.js'

/** What a token says. */
export interface Charge {
  /** The identifier of the token: it can be used once. */
  readonly id: string
  readonly limiter: string
  readonly key: string
  /** The units charged. */
  readonly cost: number
  readonly receipt: Receipt
  /** The engine whose memory has the counts; undefined: any engine of the fleet has them. */
  readonly place?: string
}

interface Signed extends Charge {
  /** Milliseconds since 1970. */
  readonly until: number
}

const sign = (key: string, payload: string): Buffer => createHmac('sha256', key).update(payload).digest()

/** Signs and checks tokens. The first key signs, and all are taken: a key is changed by adding the new one first. */
export class Signer {
  #keys: readonly string[]
  readonly #lifetimeMs: number
  /** Identifiers need not be secret, as they are signed. Random bytes for each one would take longer than the rest. */
  readonly #prefix = randomBytes(12).toString('base64url')
  #count = 0

  constructor(keys: readonly string[], lifetimeMs: number) {
    this.#keys = keys
    this.#lifetimeMs = lifetimeMs
  }

  set(keys: readonly string[]): void {
    this.#keys = keys
  }

  tokenOf(charge: Omit<Charge, 'id'>): string {
    const signed: Signed = {
      id: `${this.#prefix}${(this.#count++).toString(36)}`,
      ...charge,
      until: Date.now() + this.#lifetimeMs,
    }
    const payload = Buffer.from(JSON.stringify(signed)).toString('base64url')
    return `${payload}.${sign(this.#keys[0]!, payload).toString('base64url')}`
  }

  /** @throws ServiceError for a token that is wrong, signed by another key, or expired */
  chargeOf(token: string, field: string): Charge {
    const [payload = '', signature = '', ...more] = token.split('.')
    const given = Buffer.from(signature, 'base64url')
    let isSigned = false
    for (const key of this.#keys) {
      const own = sign(key, payload)
      if (given.length === own.length && timingSafeEqual(given, own)) isSigned = true
    }
    if (!isSigned || more.length > 0)
      throw wrongToken(field, 'a token that an engine of this fleet has signed')
    const signed: Signed = JSON.parse(Buffer.from(payload, 'base64url').toString())
    if (signed.until < Date.now()) throw wrongToken(field, 'a token that has not expired')
    return signed
  }
}

const wrongToken = (field: string, expected: string): ServiceError =>
  new ServiceError(400, 'ERR_MILLRACE_INVALID_TOKEN', `${field}: expected ${expected}`, { field, expected })

/** A key for an engine without a configured one. Other engines do not take its tokens. */
export const randomKey = (): string => randomBytes(32).toString('base64url')
