// `docs/service.md`: from nothing to three engines behind HAProxy, typed as it stands.
// run: long
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readText, root } from '../package/root.js'
import { freePort } from '../redis/ports.js'
import { haproxyTest as test } from '../redis/skip.js'
import { withPorts } from './balanced.js'
import { temporaryFolder } from './folder.js'

const [, section] = readText('docs/service.md').split(/^## Several engines$|^### /m)
const blocks = (language: string): string[] =>
  [...section!.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text]) => text!)

const EXAMPLE = 'examples/haproxy/haproxy.cfg'

test('its commands print what it shows', async () => {
  const [port, redis, ...engines] = await Promise.all(Array.from({ length: 5 }, freePort))
  const typed = (text: string) => withPorts(text, port!, engines).replaceAll('6379', `${redis}`)
  const folder = temporaryFolder()
  symlinkSync(join(root, 'node_modules'), folder.path('node_modules'))
  mkdirSync(folder.path('examples/haproxy'), { recursive: true })
  writeFileSync(folder.path(EXAMPLE), typed(readText(EXAMPLE)))
  writeFileSync(folder.path('engines.yaml'), typed(blocks('yaml')[0]!))
  const script = [
    `cd '${folder.path('')}'; set -e; trap 'kill $(jobs -p) && wait' EXIT`,
    ...blocks('bash').map((block) => `${typed(block)}\necho; echo ---`),
  ]
  const shell = spawn('bash', ['-c', script.join('\n')], { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  let errors = ''
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  await once(shell, 'close')
  const logs = ['engine1.log', 'engine2.log', 'engine3.log', 'haproxy.log'].map((name) => {
    return `${name}: ${readFileSync(folder.path(name), 'utf8')}`
  })
  const shown = ['{"status":"ready"}', ...blocks('text').map((block) => block.trim())]
  const outputs = printed.split('---\n').map((text) => text.trim())
  assert.equal(outputs.slice(0, shown.length), shown, `${errors}\n${logs.join('\n')}`)
  folder.remove()
})

test.run()
