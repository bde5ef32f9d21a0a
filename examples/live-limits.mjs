// An API whose limits are in a configuration store: each customer has a policy by their API key, the others share that
// of their plan. The command changes them while the server runs, and what a customer has used stays used.
//
// The command is in a package of its own, which is not on npm yet: run it in a clone, after `npm ci`, with the absolute
// path of the store. `npm ci` also installs lmdb. In a project of your own, run `npm install lmdb`.
//
//   npx millrace config set 'plan:free:*' --limit 5 --window 1m --store lmdb:/tmp/limits
//   npx millrace config set 'plan:pro:*' --limit 50 --window 1m --store lmdb:/tmp/limits
//   LIMITS=/tmp/limits node examples/live-limits.mjs
//   for i in $(seq 7); do curl -si http://127.0.0.1:3000/ -H 'x-api-key: free:ada' | grep -iE '^(http|rate)'; done
//   npx millrace config set plan:free:ada --rule 3/1s --rule 20/1m --store lmdb:/tmp/limits
//   npx millrace config get plan:free:ada --store lmdb:/tmp/limits
import { createServer } from 'node:http'
import { createLimiter } from 'millrace'
import { lmdbConfig } from 'millrace/config/lmdb'
import { rateLimit } from 'millrace/http'

const config = lmdbConfig({ path: process.env.LIMITS ?? './limits' })
const limiter = createLimiter({ config, default: { limit: 2, window: '1m' } })
// A real API looks up the plan of the customer whose key it is.
const limited = rateLimit({ limiter, key: ({ headers }) => `plan:${headers['x-api-key'] ?? 'none'}` })

const server = createServer((request, response) => {
  limited(request, response, () => response.end('data\n'))
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(async () => {
      await limiter.close()
      await config.close()
    })
  })
}
