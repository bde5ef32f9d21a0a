// run: full
// Each app before and after its move to Millrace, which is one import: clients see the same.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { example, withServers } from './program.js'

/** What a client sees: the status, the headers of the limiter, the body. */
type Seen = [number, Record<string, string>, string]

const isLimiterHeader = (name: string): boolean => /ratelimit|retry-after/.test(name)

/** The seconds and the moment until a window ends: the two apps don't run at the same moment. */
const UNTIL_RESET = /\d{9,}|\b(5[5-9]|60|89[5-9]|900)\b/g

async function seenBy(program: string, paths: readonly string[]): Promise<Seen[]> {
  const seen: Seen[] = []
  await withServers(example(program), 1, async ([address]) => {
    for (const path of paths) {
      const response = await fetch(address! + path)
      const headers = [...response.headers]
        .filter(([name]) => isLimiterHeader(name))
        .map(([name, value]) => [name, value.replace(UNTIL_RESET, 'soon')])
      const body = (await response.text()).replace(UNTIL_RESET, 'soon')
      seen.push([response.status, Object.fromEntries(headers), body])
    }
  })
  return seen
}

const APPS: Readonly<Record<string, { paths: string[]; statuses: number[] }>> = {
  'express-rate-limit': { paths: Array(8).fill('/'), statuses: [200, 200, 200, 200, 200, 429, 429, 429] },
  'fastify-rate-limit': {
    paths: [...Array(7).fill('/'), '/login', '/login', '/login'],
    statuses: [200, 200, 200, 200, 200, 429, 429, 200, 200, 429],
  },
  'nestjs-throttler': { paths: Array(8).fill('/'), statuses: [200, 200, 200, 200, 200, 429, 429, 429] },
  'rate-limiter-flexible': { paths: Array(7).fill('/'), statuses: [200, 200, 200, 200, 200, 429, 429] },
  limiter: { paths: Array(7).fill('/'), statuses: [200, 200, 200, 200, 200, 429, 429] },
}

for (const [name, { paths, statuses }] of Object.entries(APPS)) {
  test(`migrate/${name}: clients see the same before and after`, async () => {
    const before = await seenBy(`migrate/${name}/before.mjs`, paths)
    assert.equal(
      before.map(([status]) => status),
      statuses,
    )
    assert.equal(await seenBy(`migrate/${name}/after.mjs`, paths), before)
  })
}

test.run()
