// `docs/service.md`: its table of options, and its commands, typed as they stand.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, sourcesIn } from '../package/root.js'
import { startRedis } from '../redis/servers.js'
import { command } from './command-line.js'
import { temporaryFolder } from './folder.js'
import { optionRows } from './option-table.js'

const page = readText('docs/service.md')
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text]) => text!)
const shell = blocks('sh').flatMap((block) => block.trim().split('\n'))
const served = (line: string) => line.replace('node_modules/.bin/millrace serve ', '').split(' ')

test('the table of options is that of the service', () => {
  const rows = page.split('\n').filter((line) => /^\| `\w+` \| (?:never a flag|`--)/.test(line))
  assert.equal(rows, optionRows())
})

test('the page has every code of an error of the service', () => {
  const codes = sourcesIn('service/src').flatMap(
    (file) => readText(`service/src/${file}`).match(/ERR_MILLRACE_[A-Z_]+[A-Z]/g) ?? [],
  )
  const errors = readText('docs/reference/errors.md')
  assert.ok(codes.length > 20)
  for (const code of codes) assert.ok(page.includes(code) || errors.includes(code), code)
})

test('no command starts an engine by npx, which does not hand SIGTERM on', () => {
  const commands = [...shell, ...blocks('bash')]
  assert.ok(commands.filter((line) => line.includes('node_modules/.bin/millrace serve')).length >= 4)
  for (const line of commands) assert.not.match(line, /npx/)
})

test('the first engine answers what the page shows', async () => {
  const start = shell.find((line) => line.includes('--limit'))!
  const engine = await command(served(start), { MILLRACE_SERVE_PORT: '0' })
  const ask = shell.find((line) => line.startsWith('curl'))!.replace('http://127.0.0.1:8080', engine.url)
  const shown = JSON.parse(blocks('json')[0]!)
  const answer = JSON.parse(execFileSync('sh', ['-c', ask], { encoding: 'utf8' }))
  assert.equal({ ...answer, resetMs: 0 }, { ...shown, resetMs: 0 })
  assert.is(await engine.end(), 0)
})

test('the engine of the file runs, and shows its options', async () => {
  const redis = await startRedis()
  const folder = temporaryFolder()
  const [file, tokens] = blocks('yaml')
  writeFileSync(folder.path('service.yaml'), file!.replace(':6379', `:${redis.port}`))
  writeFileSync(folder.path('tokens.yaml'), tokens!)
  const args = (line: string) => served(line).map((arg) => (arg === 'service.yaml' ? folder.path(arg) : arg))
  const [print, run] = shell.filter((line) => line.includes('--config'))
  const printed = await command(args(print!), {})
  assert.match(
    printed.stdout,
    `# limiters: from ${folder.path('service.yaml')}\nlimiters:\n  default:\n    limit: 100`,
  )
  const variables = {
    MILLRACE_SERVE_PORT: '0',
    MILLRACE_SERVE_TOKENS_FILE: folder.path('tokens.yaml'),
    MILLRACE_SERVE_DEADLINE: '3s', // that of the page is too short for a machine that runs other tests
  }
  const engine = await command(args(run!), variables)
  const token = /token: (\w+), scopes: \[decide\]/.exec(tokens!)![1]!
  const answer = await fetch(`${engine.url}/v1/check`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ key: 'a', limiter: 'login' }),
  })
  assert.is(((await answer.json()) as { limit: number }).limit, 5)
  assert.is(await engine.end(), 0)
  await redis.stop()
  folder.remove()
})

test.run()
