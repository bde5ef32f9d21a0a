// run: own
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { WordWatch } from '#millrace/core/word-watch.js'
import { turn, until } from '../limiter/support.js'

const shared = () => new Int32Array(new SharedArrayBuffer(8))

function change(words: Int32Array): number {
  Atomics.add(words, 1, 1)
  return Atomics.notify(words, 1)
}

/** The number of pending waits on the word. They find nothing changed, and wait again. */
const pendingOn = (words: Int32Array): number => Atomics.notify(words, 1)

test('a change calls every listener once', async () => {
  const words = shared()
  const watch = new WordWatch(words, 1)
  const calls = [0, 0]
  const listeners = calls.map((_, i) => () => calls[i]!++)
  for (const listener of listeners) watch.add(listener)
  change(words)
  await until(() => calls[1] === 1, 'the first call')
  change(words)
  await until(() => calls[1] === 2, 'the second call')
  watch.delete(listeners[0]!)
  change(words)
  await until(() => calls[1] === 3, 'the third call')
  await turn()
  assert.equal(calls, [2, 3])
  watch.delete(listeners[1]!)
})

test('one wait is pending for any number of listeners and changes', async () => {
  const words = shared()
  const watch = new WordWatch(words, 1)
  let calls = 0
  const listeners = Array.from({ length: 100 }, () => () => calls++)
  for (const listener of listeners) watch.add(listener)
  for (let i = 1; i <= 20; i++) {
    assert.is(change(words), 1)
    await until(() => calls === 100 * i, `change ${i}`)
  }
  for (let i = 0; i < 20; i++) {
    for (const listener of listeners) watch.delete(listener)
    for (const listener of listeners) watch.add(listener)
  }
  assert.is(pendingOn(words), 1)
  for (const listener of listeners) watch.delete(listener)
})

test('a change before the last wait’s resolution was handled is not missed', async () => {
  const words = shared()
  const watch = new WordWatch(words, 1)
  let seen = 0
  watch.add(() => (seen = words[1]!))
  assert.is(change(words), 1)
  assert.is(change(words), 0, 'no wait is pending: the last resolution has not been handled')
  await until(() => seen === 2, 'the second change')
})

test('the first listener is called for later changes, not for earlier ones', async () => {
  const words = shared()
  const watch = new WordWatch(words, 1)
  let calls = 0
  const listener = () => calls++
  watch.add(listener)
  watch.delete(listener)
  change(words)
  change(words)
  watch.add(listener)
  await turn()
  await turn()
  assert.is(calls, 0)
  change(words)
  await until(() => calls === 1, 'the call')
  watch.delete(listener)
})

test('a change made by a listener calls the listeners again', async () => {
  const words = shared()
  const watch = new WordWatch(words, 1)
  let calls = 0
  watch.add(() => {
    if (++calls < 3) change(words)
  })
  change(words)
  await until(() => calls === 3, 'the third call')
  await turn()
  assert.is(calls, 3)
})

test('look calls the listeners at once, and the notification does not call them again', async () => {
  const words = shared()
  const watch = new WordWatch(words, 1)
  let calls = 0
  watch.add(() => calls++)
  watch.check()
  assert.is(calls, 0, 'nothing has changed')
  change(words)
  watch.check()
  assert.is(calls, 1)
  for (let i = 0; i < 3; i++) await turn()
  assert.is(calls, 1)
  change(words)
  await until(() => calls === 2, 'a later change')
})

test('end leaves no wait of this watch pending, and keeps those of others', async () => {
  const words = shared()
  const [one, other] = [new WordWatch(words, 1), new WordWatch(words, 1)]
  let calls = 0
  const listener = () => calls++
  one.add(() => {})
  other.add(listener)
  other.end()
  await turn()
  assert.is(pendingOn(words), 2, 'a watch with a listener does not end')
  other.delete(listener)
  other.end()
  await until(() => pendingOn(words) === 1, 'the end of one of them')
  assert.is(calls, 0)
})

test('a word on which no thread can wait is polled while there are listeners', async () => {
  const words = new Int32Array(2)
  const watch = new WordWatch(words, 1)
  let calls = 0
  const listener = () => calls++
  watch.add(listener)
  change(words)
  await until(() => calls === 1, 'the next look')
  watch.delete(listener)
  watch.end()
  change(words)
  assert.not(process.getActiveResourcesInfo().includes('Timeout'))
})

test('a pending wait keeps neither the watch nor its memory alive', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const left = (() => {
    const words = shared()
    const watch = new WordWatch(words, 1)
    const listener = () => {}
    watch.add(listener)
    watch.delete(listener)
    assert.is(pendingOn(words), 1)
    return new WeakRef(watch)
  })()
  await until(() => {
    collect()
    return left.deref() === undefined
  }, 'the collection of the watch')
})

test.run()
