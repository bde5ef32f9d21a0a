// The worker thread's side of the soak.
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import type { Order } from './partner.js'
import { type SharedSoak, Side } from './side.js'

const port = parentPort!
const side = new Side(workerData as SharedSoak)
let order = { name: 'rest' } as Order
port.on('message', (next: Order) => {
  order = next
})
const nextOrder = () => once(port, 'message')

for (;;) {
  if (order.name === 'go') {
    side.slice(order.ends)
    await new Promise<void>((resolve) => setImmediate(resolve))
  } else if (order.name === 'rest') {
    const resumed = nextOrder()
    port.postMessage(side.rest())
    await resumed
  } else break
}
port.postMessage(await side.close())
port.close()
