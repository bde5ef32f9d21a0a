// What tests of faults do: a stand-in that is ended afterwards, stores on it, and what they tell.
import { MillraceError } from 'millrace'
import { mongoConfig } from 'millrace/config/mongodb'
import * as assert from 'uvu/assert'
import type { ConfigChange, ConfigStore } from '#millrace/config/config-store.js'
import { poll } from '../redis/poll.js'
import { type Kind, StandIn } from './mongo-stand-in/stand-in.js'

export const MINUTE = { limit: 100, window: '1m' }
export const HOUR = { limit: 1000, window: '1h' }
const DEADLINE = '200ms'

/** Runs a test with a stand-in and stores on it, which are ended afterwards. */
export async function withStandIn(
  kind: Kind,
  act: (standIn: StandIn, open: (deadline?: string) => ConfigStore) => Promise<void>,
  isUp = true,
): Promise<void> {
  const standIn = await StandIn.onFreePort(kind)
  if (isUp) await standIn.listen()
  const stores: ConfigStore[] = []
  try {
    await act(standIn, (deadline = DEADLINE) => {
      stores.push(mongoConfig({ url: standIn.url, deadline }))
      return stores.at(-1)!
    })
  } finally {
    for (const store of stores) await store.close()
    await standIn.stop()
  }
  assert.equal(standIn.refused, [])
}

/** Watches, and resolves when the watch has begun. */
export async function watched(
  store: ConfigStore,
): Promise<{ changes: ConfigChange[]; knows(key: string): boolean }> {
  const changes: ConfigChange[] = []
  store.watch((change) => void changes.push(change))
  await poll(() => changes.some(isAny), 'the beginning of the watch')
  changes.length = 0
  return { changes, knows: (key) => changes.some(({ keys }) => keys?.includes(key)) }
}

/** Whether a change says that any policy may have changed. */
export const isAny = ({ keys, error }: ConfigChange) => keys === undefined && error === undefined
/** The errors that were told. */
export const errorsIn = (changes: readonly ConfigChange[]) => changes.flatMap(({ error }) => error ?? [])

export async function fails(act: () => Promise<unknown>, text?: RegExp): Promise<void> {
  try {
    await act()
  } catch (error) {
    assert.instance(error, MillraceError)
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.instance((error as MillraceError).cause, Error)
    if (text !== undefined) assert.match(String((error as MillraceError).cause), text)
    return
  }
  assert.unreachable('expected ERR_MILLRACE_CONFIG_STORE')
}
