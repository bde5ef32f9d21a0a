// The program of docs/how-to/sharding-redis.md prints what its comments say, and so does its formula.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readText, root } from '../package/root.js'
import { withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'

const [, code = ''] = /^```js\n([\s\S]*?)^```/m.exec(readText('docs/how-to/sharding-redis.md')) ?? []

test('the program runs to its end, and prints what it says', () =>
  withServers(3, async (servers) => {
    const file = join(root, 'build', `sharding-docs-${process.pid}.mjs`)
    writeFileSync(file, code)
    try {
      const urls = servers.map(({ name, server }) => [
        `REDIS_${name.toUpperCase()}`,
        `redis://127.0.0.1:${server.port}`,
      ])
      const env = { ...process.env, ...Object.fromEntries(urls) }
      const child = spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      let output = ''
      child.stdout.on('data', (chunk) => (output += chunk))
      const [status] = await once(child, 'close')
      assert.is(status, 0)
      assert.equal(output.trim().split('\n'), ['true 60', 'false', 'A closed,B closed,C closed'])
    } finally {
      rmSync(file)
    }
  }))

test('its comments are what it prints', () => {
  const comments = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, comment]) => comment)
  assert.equal(comments, ['true 60', 'false, on whichever server alice is', 'A closed,B closed,C closed'])
})

test.run()
