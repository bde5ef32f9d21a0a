// A crawler that stays under 10 requests a second for each host, however many hosts it visits at once. It follows
// the links of three servers on this machine, which have that limit themselves, and prints what each of them saw.
// The first request is answered by a 503 with Retry-After, and the crawler comes back then.
//
//   node examples/crawler.mjs
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createLimiter } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import { rateLimit } from 'millrace/http'

const LIMIT = 10
const WINDOW_MS = 1_000
const PAGES = 25 // of each server
const RETRY_AFTER_SECONDS = 1

const servers = await Promise.all(['news', 'shop', 'wiki'].map(startServer))
for (const server of servers) server.linksTo = servers.map(({ url }) => url)

// A little longer than the servers' window: they count in buckets, and a request for up to a sixtieth longer.
const limiter = createLimiter({ limit: LIMIT, window: 1.02 * WINDOW_MS })
const politeFetch = limitedFetch(fetch, { limiter })

await crawl(`${servers[0].url}/0`)

for (const { name, arrivalsMs, refused } of servers) {
  const most = mostInAnyWindow(arrivalsMs)
  console.log(`${name}: ${arrivalsMs.length} requests, at most ${most} in any second, ${refused} refused`)
  if (most > LIMIT || refused > 0) process.exitCode = 1
}
const [firstMs, secondMs] = servers[0].arrivalsMs
const pauseSeconds = (secondMs - firstMs) / 1_000
console.log(`news asked for ${RETRY_AFTER_SECONDS} s, and the crawler waited ${pauseSeconds.toFixed(2)} s`)
if (pauseSeconds < RETRY_AFTER_SECONDS) process.exitCode = 1

for (const { server } of servers) {
  server.close()
  server.closeAllConnections()
}
await limiter.close()

/** Visits a page and all that it leads to, each once. The limiter spreads the requests: there is no other queue. */
async function crawl(start) {
  const seen = new Set([start])
  const visit = async (url) => {
    const response = await politeFetch(url)
    const { links } = await response.json()
    const found = links.filter((link) => !seen.has(link))
    for (const link of found) seen.add(link)
    await Promise.all(found.map(visit))
  }
  await visit(start)
}

/** A server whose pages link to the next two pages of each server. */
async function startServer(name) {
  const state = { name, arrivalsMs: [], refused: 0, linksTo: [] }
  const onLimited = () => state.refused++
  const limited = rateLimit({ limit: LIMIT, window: WINDOW_MS, standard: false, onLimited })
  state.server = createServer((request, response) => {
    state.arrivalsMs.push(performance.now())
    limited(request, response, () => {
      if (name === 'news' && state.arrivalsMs.length === 1) {
        response.writeHead(503, { 'Retry-After': RETRY_AFTER_SECONDS }).end()
        return
      }
      const page = Number(request.url.slice(1))
      const next = [page + 1, page + 2].filter((each) => each < PAGES)
      const links = next.flatMap((each) => state.linksTo.map((url) => `${url}/${each}`))
      response.end(JSON.stringify({ links }))
    })
  })
  state.server.listen(0, '127.0.0.1')
  await once(state.server, 'listening')
  state.url = `http://127.0.0.1:${state.server.address().port}`
  return state
}

function mostInAnyWindow(times) {
  return Math.max(...times.map((start) => times.filter((at) => at >= start && at < start + WINDOW_MS).length))
}
