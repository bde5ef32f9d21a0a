// The program on the page about Memcached, on a server.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { runNode } from '../package/project.js'
import { readText, root } from '../package/root.js'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { end } from './limiters.js'

const SERVER = 'localhost:11211'
const [, program = ''] = /^```js\n([\s\S]*?)^```/m.exec(readText('docs/how-to/memcached.md')) ?? []
const shown = [...program.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, output]) => output!)

test('the program prints what its comments say', async () => {
  assert.ok(program.includes(SERVER) && shown.length > 0)
  const server = await startMemcached()
  // Inside of the package, so that `millrace` is the package itself.
  const file = join(root, 'build', `memcached-page-${process.pid}.mjs`)
  writeFileSync(file, program.replace(SERVER, `127.0.0.1:${server.port}`))
  try {
    const { code, out, err } = await runNode([file], root)
    assert.is(code, 0, err)
    assert.equal(out.trim().split('\n'), shown)
  } finally {
    rmSync(file)
    await end(server)
  }
})

test.run()
