// Each way in which `millrace serve` can't start: one line, and the exit code of the page.
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { run } from 'millrace-service/command'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HOST } from '../redis/ports.js'
import { startRedis } from '../redis/servers.js'
import { command } from './command-line.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
test.after(() => folder.remove())

function file(text: string, name = 'service.yaml'): string {
  writeFileSync(folder.path(name), text)
  return folder.path(name)
}

type Variables = Record<string, string>

/** The command as a process. */
async function started(args: string[], env: Variables = {}) {
  const ended = await command(['--port', '0', ...args], env)
  if (ended.url !== '') await ended.end()
  return ended
}

/** The command in this process: most cases need no start of another one. */
async function ran(args: string[], env: Variables = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  stdout.once('data', () => process.kill(process.pid, 'SIGTERM')) // it listens, and is to end
  Object.assign(process.env, { MILLRACE_SERVE_LOG_LEVEL: 'warn', ...env })
  try {
    const code = await run(['--port', '0', ...args], { stdout, stderr })
    return { code, stderr: String(stderr.read() ?? '') }
  } finally {
    for (const name of ['MILLRACE_SERVE_LOG_LEVEL', ...Object.keys(env)]) delete process.env[name]
  }
}

async function fails(
  args: string[],
  code: number,
  line: RegExp,
  env: Variables = {},
  by: (args: string[], env?: Variables) => Promise<{ code: number | null; stderr: string }> = ran,
) {
  const ended = await by(args, env)
  assert.is(ended.code, code, `${args.join(' ')}: ${ended.stderr}`)
  const lines = ended.stderr.trimEnd().split('\n')
  assert.is(lines.length, 1, ended.stderr)
  assert.match(lines[0]!, line)
  assert.not.match(ended.stderr, /\n +at |s3cret/)
}

const LIMIT = ['--limit', '10/1m']

test('an option that is unknown, wrong or missing is exit code 2', async () => {
  await fails([], 2, /limit: expected a limit and its window/, {}, started)
  await fails(['--limt', '1/1s'], 2, /unknown option --limt \(did you mean --limit\?\)/)
  await fails(['--limit', '10'], 2, /limit: expected a limit and its window, such as 100\/1m, got "10"/)
  await fails(['--limit', '0/1m'], 2, /limit: .*expected/)
  await fails([...LIMIT, '--max-keys', 'many'], 2, /--max-keys: expected a whole number from 1/)
  await fails([...LIMIT, '--deadline', '5'], 2, /--deadline: expected a duration with its unit/)
  await fails([...LIMIT, '--counts', 'sql://host'], 2, /counts: expected memory, file:PATH/)
  await fails([...LIMIT, '--policies', 'sql://host'], 2, /policies: expected lmdb:PATH/)
  await fails(
    [...LIMIT, '--config', folder.path('none.yaml')],
    2,
    /--config: expected a file that can be read/,
  )
  await fails(
    ['--config', file('limit: 1/1m\nlimts: 1\n')],
    2,
    /unknown option "limts" \(did you mean limit\?\)/,
  )
  await fails(
    ['--config', file('limiters: { a: { limit: 1, window: 1m, wndow: 1 } }')],
    2,
    /limiters\.a: .*wndow/,
  )
  await fails(
    [...LIMIT, '--config', file('limiters: { default: { limit: 1, window: 1m } }')],
    2,
    /limit: expected none/,
  )
  await fails(['--limiters', '{a'], 2, /--limiters: expected limiters by name/)
  await fails([...LIMIT, '--host', '0.0.0.0'], 2, /host: expected tokens or TLS/)
  const digits = ['--config', file('countsPassword: 12345678\n'), ...LIMIT]
  await fails(digits, 2, /countsPassword: expected a text .*, got another value$/)
  await fails([...LIMIT, '--tls-cert', file('x'), '--tls-key', 'none'], 2, /tlsCert, tlsKey.*: expected PEM/)
  await fails([...LIMIT, '--tls-cert', 'x'], 2, /tlsKey: expected a file beside tlsCert/)
})

test('an option with two values is exit code 2, and names both sources', async () => {
  const config = file('maxKeys: 5\nlimit: 10/1m\n')
  await fails(
    ['--config', config, '--max-keys', '6'],
    2,
    /maxKeys: expected one value, got two, from .*service\.yaml and --max-keys: 5 and 6/,
  )
  await fails(
    [...LIMIT, '--prefix', 'b'],
    2,
    /prefix: expected one value, got two, from MILLRACE_SERVE_PREFIX and --prefix: "a" and "b"/,
    {
      MILLRACE_SERVE_PREFIX: 'a',
    },
  )
  await fails([...LIMIT, '--prefix', 'a', '--prefix', 'b'], 2, /prefix: expected one value/)
})

test('a secret is in no flag, and no message has it', async () => {
  await fails([...LIMIT, '--tokens', 's3cret'], 2, /--tokens: expected no secret in a flag/)
  await fails([...LIMIT, '--signing-keys', 's3cret'], 2, /--signing-keys: expected no secret in a flag/)
  await fails([...LIMIT, '--counts', 'redis://u:s3cret@h'], 2, /--counts: expected no password in a flag/)
  const short = { MILLRACE_SERVE_TOKENS: '[{ token: s3cret, scopes: [decide] }]' }
  await fails(LIMIT, 2, /tokens/, short)
  await fails(LIMIT, 2, /tokens/, short, started)
  await fails(LIMIT, 2, /signingKeys/, { MILLRACE_SERVE_SIGNING_KEYS: 's3cret' })
  const config = file('tokens: [{ token: s3cret-0123456789, scopes: [decide] }]')
  await fails([...LIMIT, '--config', config], 2, /tokens: expected one value, got two/, {
    MILLRACE_SERVE_TOKENS: '[{ token: other-s3cret-0123456789, scopes: [decide] }]',
  })
})

test('a port in use is exit code 3', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve))
  const { port } = server.address() as { port: number }
  const ended = await command([...LIMIT, '--port', String(port)])
  server.close()
  assert.is(ended.code, 3)
  assert.match(ended.stderr, `EADDRINUSE: address already in use ${HOST}:${port}\n`)
})

test('a store that refuses is exit code 4', async () => {
  const redis = await startRedis({ args: ['--requirepass', 'right'] })
  const counts = `redis://${HOST}:${redis.port}`
  await fails(
    [...LIMIT, '--counts', 'redis://127.0.0.1:1'],
    4,
    /counts: redis:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/,
  )
  const memcached = [...LIMIT, '--counts', 'memcached://127.0.0.1:1']
  for (const by of [ran, started]) await fails(memcached, 4, /counts: memcached.*ECONNREFUSED/, {}, by)
  await fails([...LIMIT, '--counts', counts], 4, /counts: redis.*NOAUTH/)
  const password = { MILLRACE_SERVE_COUNTS_PASSWORD: 's3cret' }
  for (const by of [ran, started]) await fails([...LIMIT, '--counts', counts], 4, /WRONGPASS/, password, by)
  await redis.stop()
  await fails([...LIMIT, '--policies', counts], 4, /policies: redis/)
  await fails([...LIMIT, '--policies', `file:${folder.path('none/policies.json')}`], 4, /policies\.json/)
})

test('--print-config shows the options with their sources, and hides secrets', async () => {
  const config = file(
    'counts: "redis://user:s3cret@host:6379"\ntokens: [{ token: s3cret-0123456789, scopes: [decide] }]\n',
  )
  const { stdout, code } = await command(
    ['--limit', '1/1s', '--limit', '9/1m', '--config', config, '--print-config'],
    {
      MILLRACE_SERVE_DEADLINE: '20ms',
    },
  )
  assert.is(code, 0)
  assert.not.match(stdout, 's3cret')
  assert.match(stdout, '# limit: from --limit\nlimit:\n  - 1/1s\n  - 9/1m\n')
  assert.match(stdout, '# deadline: from MILLRACE_SERVE_DEADLINE\ndeadline: 20\n')
  assert.match(stdout, `# counts: from ${config}\ncounts: redis://user:***@host:6379\n`)
  assert.match(stdout, `# tokens: from ${config}\ntokens: "***"\n`)
  assert.match(stdout, '# port: from default\nport: 8080\n')
})

test.run()
