// The programs of docs/how-to/service-client.md, with engines in the place of their addresses.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClientOptions, createClient } from 'millrace/client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, root } from '../package/root.js'
import { engine, TOKEN } from './support.js'

const PAGE = readText('docs/how-to/service-client.md')
const [program, several] = [...PAGE.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code]) => code!)

test('the program prints what it says', async () => {
  const running = await engine({ limit: 100 })
  const file = join(root, 'build', `client-docs-${process.pid}.mjs`)
  const address = `'${running.url}', token: '${TOKEN}'`
  writeFileSync(file, program!.replace("'http://127.0.0.1:8080'", address))
  try {
    const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    const [status] = await once(child, 'close')
    const [, comment] = /console\.log\(.*\) \/\/ (.*)$/m.exec(program!) ?? []
    assert.equal([status, output.trim()], [0, comment])
  } finally {
    rmSync(file)
    await running.close()
  }
})

test('the list of engines has keys for each', async () => {
  const [a, b] = [await engine(), await engine()]
  const [, list] = /urls: (\[.*\])/.exec(several!) ?? []
  const shown = list!.match(/'([^']+)'/g)!.map((text) => text.slice(1, -1))
  const options: ClientOptions = {
    urls: shown.map((_, i) => (i === 0 ? a.url : b.url)),
    token: TOKEN,
    deadline: '1m',
  }
  const limiter = createClient(options)
  const keys = Array.from({ length: 40 }, (_, i) => `user:${i}`)
  await limiter.checkMany(keys)
  for (const { limiter: own } of [a, b]) assert.ok(keys.some((key) => own.usage(key) === 1))
  await limiter.close()
  for (const { close } of [a, b]) await close()
})

test('the function for runtimes without modules of Node.js decides by fetch', async () => {
  const running = await engine({ limit: 1 })
  const [, code] = /^```js\n(export async function isAllowed[\s\S]*?)^```/m.exec(
    readText('docs/how-to/serverless.md'),
  )!
  const own = code!.replace('https://limits.example.com', running.url).replace('<token>', TOKEN)
  const { isAllowed } = await import(`data:text/javascript,${encodeURIComponent(own)}`)
  assert.equal(
    [await isAllowed('key'), await isAllowed('key'), await isAllowed('other')],
    [true, false, true],
  )
  await running.close()
})

test('its table has every option', () => {
  const shown = [...PAGE.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell]) => cell!.match(/\w+/g)!)
  try {
    createClient({ nothing: 1 } as unknown as ClientOptions)
  } catch (error) {
    const [, names] = /only (.*?)(?:, got| \()/.exec((error as Error).message) ?? []
    assert.equal(shown.sort(), names!.split(', ').sort())
  }
})

test.run()
