// run: full, typescript
// The sentinel that tests of clients stand on.
import * as assert from 'uvu/assert'
import { SENTINEL_NAME, type Sentinel, startSentinel } from './sentinel.js'
import { redisTest as test } from './skip.js'
import { connectWire, sendOnce } from './wire.js'

let watched: Sentinel
test.before(async () => {
  watched = await startSentinel()
})
test.after(() => watched?.stop())

const ask = () => sendOnce(watched.sentinel.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SENTINEL_NAME)

test('the sentinel says which server is primary, and the other replicates it', async () => {
  const { primary, replica } = watched
  assert.equal(await ask(), ['127.0.0.1', String(primary.port)])
  const wire = await connectWire(primary.port)
  assert.equal(
    await wire.pipeline([
      ['SET', 'key', 'value'],
      ['WAIT', 1, 0],
    ]),
    ['OK', 1],
  )
  wire.close()
  assert.is(await sendOnce(replica.port, 'GET', 'key'), 'value')
  const error = await sendOnce(replica.port, 'SET', 'key', 'other').catch(({ code }) => code)
  assert.is(error, 'READONLY')
})

test('after a failover the replica is primary, with its data; the other joins it as a replica', async () => {
  const { primary, replica } = watched
  await watched.failover()
  assert.equal([watched.primary, watched.replica], [replica, primary])
  assert.equal(await ask(), ['127.0.0.1', String(replica.port)])
  assert.is(await sendOnce(replica.port, 'SET', 'key', 'other'), 'OK')
  assert.not(primary.isRunning)
  await watched.rejoin()
  assert.is(await sendOnce(primary.port, 'GET', 'key'), 'other')
})

test('the former primary can be promoted again', async () => {
  const { primary, replica } = watched
  await watched.failover()
  assert.equal(await ask(), ['127.0.0.1', String(replica.port)])
  assert.is(watched.replica, primary)
})

test.run()
