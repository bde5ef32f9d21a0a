// The programs of docs/how-to/http-frameworks.md for this runtime: the address of a client comes from its server.
import * as assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'

/** The block of the page that has this text, as a module on a free port. */
async function programWith(text) {
  const page = readFileSync('node_modules/millrace/docs/how-to/http-frameworks.md', 'utf8')
  const code = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)]
    .map(([, each]) => each)
    .find((each) => each.includes(text))
  assert.ok(code?.includes('port: 3000'), code)
  writeFileSync('page.mjs', `${code.replace('port: 3000', 'port: 0')}\nexport { fetch as limited, server }\n`)
  return import(`${process.cwd()}/page.mjs`)
}

export async function pageLimits() {
  const { limited, server } = await programWith(globalThis.Bun ? 'Bun.serve' : 'Deno.serve')
  const url = `http://127.0.0.1:${server.port ?? server.addr.port}/`
  const left = async () => {
    const response = await fetch(url)
    assert.equal(await response.text(), 'hello\n')
    return response.headers.get('ratelimit').match(/r=(\d+)/)[1]
  }
  assert.deepEqual([await left(), await left()], ['99', '98'])
  await limited.reset('127.0.0.1')
  assert.equal(await left(), '99')
  if (globalThis.Bun) server.stop(true)
  else await server.shutdown()
}
