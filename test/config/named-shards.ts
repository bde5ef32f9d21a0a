// Shards by their names, for tests.
import { MillraceError } from 'millrace'
import * as assert from 'uvu/assert'
import type { Policy } from '#millrace/config/policy.js'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { TextStore } from './text-store.js'

export const policyOf = (limit: number): Policy => ({ limit, window: '1m' })
export const KEYS = Array.from({ length: 60 }, (_, i) => `user:${i}`)

export const namesOf = (shards: Record<string, TextStore>) =>
  new Rendezvous(Object.keys(shards).map((name) => [name, name]))
export const shardsOf = (...names: string[]): Record<string, TextStore> =>
  Object.fromEntries(names.map((name) => [name, new TextStore()]))

/** The code of the error with which a call rejects. */
export async function codeOf(act: Promise<unknown>): Promise<string | undefined> {
  try {
    await act
    return undefined
  } catch (error) {
    assert.instance(error, MillraceError)
    return (error as MillraceError).code
  }
}
