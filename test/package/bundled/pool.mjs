// Makes one decision on a pool and prints the result. Bundled by bundle.test.ts.
import { createLimiter } from 'millrace'

async function ask() {
  const limiter = createLimiter({ limit: 10, window: '1m', engine: 'pool' })
  const { remaining } = await limiter.check('somebody')
  await limiter.close()
  return `${remaining} remaining`
}

ask().then(
  (answer) => console.log(answer),
  ({ code, message }) => console.log(`${code}: ${message}`),
)
