// run: full
// Faults of a MongoDB server that take seconds.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { Refusal } from './mongo-stand-in/refusal.js'
import { errorsIn, fails, HOUR, isAny, MINUTE, watched, withStandIn } from './mongodb-stage.js'

console.log('note: mongodb: the stand-in, not a MongoDB server, also if MONGODB_URL is set')

test('a change stream that falls silent is noticed', () =>
  withStandIn('replica set', async (standIn, open) => {
    const store = open()
    const { changes } = await watched(store)
    standIn.delayMs = 60_000
    await poll(() => errorsIn(changes).length > 0, 'the error')
    standIn.delayMs = 0
    await poll(() => changes.some(isAny), 'the watch')
  }))

test('standalone: more changes than the log keeps', () =>
  withStandIn('standalone', async (standIn, open) => {
    const [store, other] = [open('5s'), open('5s')]
    const { changes, knows } = await watched(store)
    let read = () => {}
    const held = new Promise<undefined>((resolve) => {
      read = () => resolve(undefined)
    })
    standIn.onCommand = (name, { filter }) => (name === 'find' && filter.last ? held : undefined)
    await Promise.all(Array.from({ length: 250 }, (_, i) => other.put(`key:${i}`, MINUTE)))
    standIn.onCommand = () => undefined
    read()
    await poll(() => changes.some(isAny), 'that anything may have changed')
    await other.put('a', MINUTE)
    await poll(() => knows('a'), 'a')
  }))

test('standalone: a writer that dies after its log entry is told all the same, though late', () =>
  withStandIn('standalone', async (standIn, open) => {
    const [store, other] = [open(), open()]
    await other.put('a', MINUTE)
    const { changes, knows } = await watched(store)
    standIn.onCommand = (name, command) => {
      if (name === 'update' && command.update === 'policies') throw new Refusal(1, 'InternalError', 'it died')
      return undefined
    }
    await fails(() => other.put('a', HOUR), /it died/)
    assert.not(knows('a'))
    await poll(() => knows('a'), 'the change that was logged')
    assert.equal(errorsIn(changes), [])
  }))

test.run()
