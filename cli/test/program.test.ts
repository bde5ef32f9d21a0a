import { gzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { log, logged, ran } from './streams.js'

const replayed = (input: string | Buffer, ...options: string[]) => ran(['replay', '-', ...options], [input])

test('--json prints the figures', async () => {
  const { code, out, err } = await replayed(
    `${log({ '192.0.2.1': 5, '2001:db8::1': 2 })}what is this\n`,
    ...['--limit', '3', '--window', '1m', '--json'],
  )
  assert.equal([code, err], [0, ''])
  assert.equal(JSON.parse(out), {
    requests: 7,
    clients: 2,
    refusedClients: 1,
    refused: 2,
    exactRefused: 2,
    wronglyAdmitted: 0,
    wronglyRefused: 0,
    refusedTooEarly: 0,
    algorithm: 'sliding-window',
    limit: 3,
    windowMs: 60_000,
    granularityMs: 1_000,
    edge: 'strict',
    firstMs: Date.UTC(2026, 2, 9, 14),
    lastMs: Date.UTC(2026, 2, 9, 14, 0, 4),
    unparsed: 1,
    key: 'ip',
    withoutUser: 7,
    format: 'common',
    formatGuessed: true,
    withoutRequest: 0,
    topRefused: [{ client: '192.0.2.1', requests: 5, refused: 2, peak: 5 }],
  })
})

test('every option has an effect, in its long and its short form', async () => {
  const long = [
    '--limit',
    '2',
    '--window',
    '10s',
    '--granularity',
    '500ms',
    '--edge',
    'smooth',
    '--key',
    'ip',
  ]
  const short = ['-l', '2', '-w', '10000ms', '-g', '0.5s', '-e', 'smooth', '-k', 'ip']
  const text = log({ '192.0.2.1': 30 })
  const found = await replayed(text, ...long, '--json')
  assert.equal(await replayed(text, ...short, '--json'), found)
  const { limit, windowMs, granularityMs, edge } = JSON.parse(found.out)
  assert.equal([limit, windowMs, granularityMs, edge], [2, 10_000, 500, 'smooth'])
})

test('--rule replays several rules at once, and prints the figures of each', async () => {
  // A request each second. The first rule admits those of the seconds 0, 3 and 6: a bucket counts whole.
  const text = log({ '192.0.2.1': 9, '192.0.2.2': 2 })
  const { code, out, err } = await replayed(text, '--rule', '1/2s', '-r', '3/1m', '--json', '-t', '1')
  assert.equal([code, err], [0, ''])
  const { rules, refused, refusedTooEarly, wronglyAdmitted, topRefused, ...others } = JSON.parse(out)
  assert.equal([wronglyAdmitted, refusedTooEarly], [0, 0])
  assert.equal(
    rules.map(({ name, limit, windowMs }: Record<string, unknown>) => [name, limit, windowMs]),
    [
      ['1/2s', 1, 2_000],
      ['3/1m', 3, 60_000],
    ],
  )
  assert.equal(
    rules.map(({ refused }: { refused: number }) => refused),
    [7, 2],
  )
  assert.is(refused, 7)
  assert.equal([others.limit, others.windowMs, others.edge], [undefined, undefined, 'strict'])
  assert.equal(topRefused, [
    {
      ...{ client: '192.0.2.1', requests: 9, refused: 6 },
      rules: [
        { name: '1/2s', refused: 6, peak: 2 },
        { name: '3/1m', refused: 2, peak: 9 },
      ],
    },
  ])
  const inOtherUnits = await replayed(text, '--rule', '1/2000ms', '-r', '3/60s', '--json', '-t', '1')
  assert.is(inOtherUnits.out, out)
})

test('one --rule is the same as --limit and --window', async () => {
  const text = log({ '192.0.2.1': 30 })
  const more = ['-g', '500ms', '-e', 'smooth', '-c', 'fixed-window']
  for (const output of [[], ['--json']]) {
    const found = await replayed(text, '--rule', '2/10s', ...more, ...output)
    assert.is(found.code, 0)
    assert.equal(found, await replayed(text, '-l', '2', '-w', '10s', ...more, ...output))
  }
})

test('--granularity, --edge and --compare act on every rule', async () => {
  const text = log({ '192.0.2.1': 30 })
  const options = ['-r', '2/10s', '-r', '5/1m', '-g', '5s', '-e', 'smooth', '-c', 'fixed-window', '--json']
  const { rules, edge, fixedWindow } = JSON.parse((await replayed(text, ...options)).out)
  assert.equal(
    rules.map(({ granularityMs }: { granularityMs: number }) => granularityMs),
    [5_000, 5_000],
  )
  assert.is(edge, 'smooth')
  assert.equal(
    fixedWindow.rules.map(({ name }: { name: string }) => name),
    ['2/10s', '5/1m'],
  )
})

test('--top sets the number of listed clients', async () => {
  const text = log({ '192.0.2.1': 3, '192.0.2.2': 5, '192.0.2.3': 4 })
  const { out } = await replayed(text, '--limit', '1', '--top', '2')
  assert.match(out, 'The 2 clients with the most refusals:')
  assert.ok(out.indexOf('192.0.2.2') < out.indexOf('192.0.2.3'))
  assert.not.match(out, '192.0.2.1')
  const { topRefused, refusedClients } = JSON.parse(
    (await replayed(text, '-l', '1', '-t', '1', '--json')).out,
  )
  assert.equal([topRefused.length, topRefused[0].client, refusedClients], [1, '192.0.2.2', 3])
})

test('--key counts by the given fields', async () => {
  const text = [
    logged('192.0.2.1', 0, { user: 'ada', path: '/a?1' }),
    logged('192.0.2.2', 1, { user: 'ada', path: '/a?2' }),
    logged('192.0.2.2', 2, { path: '/b' }),
    logged('192.0.2.1', 3, { path: '/a' }),
  ].join('\n')
  const found = async (key: string) => {
    const { clients, refused, topRefused, withoutUser } = JSON.parse(
      (await replayed(text, '--limit', '1', '--key', key, '--json')).out,
    )
    assert.is(withoutUser, 2)
    return [clients, refused, ...topRefused.map(({ client }: { client: string }) => client)]
  }
  assert.equal(await found('ip'), [2, 2, '192.0.2.1', '192.0.2.2'])
  assert.equal(await found('user'), [3, 1, 'ada'])
  assert.equal(await found('path'), [2, 2, '/a'])
  assert.equal(await found('user+path'), [3, 1, 'ada /a'])
  assert.equal(await found('ip+path'), [3, 1, '192.0.2.1 /a'])
  const { out } = await replayed(text, '--limit', '1', '--key', 'user')
  assert.match(out, 'without a user    2 (50.0 %), counted by ip\n')
})

test('the report has a chart from 40 columns, also in a pipe, and colour on a terminal with colour', async () => {
  const text = log({ '192.0.2.1': 20 })
  const replay = (columns?: number, depth?: number) => ran(['replay', '-', '-l', '3'], [text], columns, depth)
  assert.match((await replay()).out, 'Requests per 1s (UTC):\n')
  assert.match((await replay(40)).out, 'Requests per 1s (UTC):\n')
  assert.not.match((await replay(39)).out, 'Requests per')
  assert.not.match((await replay(80, 1)).out, '\x1b')
  assert.match((await replay(80, 4)).out, '\x1b[31m×\x1b[39m refused')
  assert.not.match((await replay(undefined, 4)).out, '\x1b')
})

test('order, CRLF, a missing last line end and gzip do not change the result', async () => {
  const lines = log({ '192.0.2.1': 30, 'host.example': 20 }).trimEnd().split('\n')
  const options = ['--limit', '4', '--window', '7s', '--json']
  const plain = await replayed(`${lines.join('\n')}\n`, ...options)
  assert.ok(JSON.parse(plain.out).refused > 0)
  assert.equal(await replayed(lines.join('\r\n'), ...options), plain)
  assert.equal(await replayed([...lines].reverse().join('\n'), ...options), plain)
  assert.equal(await replayed(gzipSync(lines.join('\n')), ...options), plain)
})

test('unparsed lines are counted and the first two printed; blank lines are ignored', async () => {
  const { code, out } = await replayed(`first\n\n${logged('192.0.2.1', 0)}\nsecond\nthird\n\n`)
  assert.is(code, 0)
  assert.match(out, 'unparsed lines    3\n  line 1: first\n  line 4: second\n\n')
})

test('a log without a valid line exits with 2', async () => {
  const { code, out, err } = await replayed('\x1b[31mone\ntwo\n')
  assert.equal([code, out], [2, ''])
  assert.is(
    err,
    'millrace: none of the 2 lines is in the Common or Combined Log Format, JSON lines of nginx, pino, Caddy or Traefik, or logs of AWS load balancers; the first is: \\u001b[31mone\n',
  )
})

test('an empty log has no requests and exits with 0', async () => {
  for (const empty of ['', '\n\n', gzipSync('')]) {
    const { code, out, err } = await replayed(empty)
    assert.equal([code, err], [0, ''])
    assert.match(out, 'requests          0\n')
  }
})

test('help and version go to stdout and exit with 0; without a command, help goes to stderr and exits with 2', async () => {
  const help = await ran(['--help'])
  assert.equal([help.code, help.err], [0, ''])
  assert.match(help.out, /^Usage: millrace \[options\] \[command\]\n/)
  assert.match(help.out, 'Exit codes: 0 success; 1 the limiter broke a guarantee, a demo did not reach')
  assert.equal(await ran(['-h']), help)
  assert.equal(await ran(['help']), help)
  assert.equal(await ran([]), { code: 2, out: '', err: help.out })
  const replay = await ran(['help', 'replay'])
  assert.is(replay.code, 0)
  assert.match(replay.out, /^Usage: millrace replay \[options\] <file>\n/)
  assert.match(replay.out, 'Exit codes: 0 success; 1 the limiter broke a guarantee, a demo did not reach')
  assert.equal(await ran(['replay', '--help']), replay)
  for (const option of ['--version', '-V']) assert.match((await ran([option])).out, /^\d+\.\d+\.\d+\n$/)
})

test('help and report are no wider than the terminal', async () => {
  const text = log({ [`${'long-name.'.repeat(20)}example`]: 20, '192.0.2.1': 20 })
  for (const columns of [40, 80, 120]) {
    const several = [
      'replay',
      '-',
      '--rule',
      '3/1m',
      '-r',
      '2/1s',
      '-r',
      '10/1h',
      '-c',
      'fixed-window,sliding-counter',
    ]
    for (const args of [['--help'], ['help', 'replay'], ['replay', '-', '--limit', '3'], several]) {
      const { out } = await ran(args, [text], columns)
      assert.ok(out.length > 0)
      for (const line of out.split('\n')) assert.ok(line.length <= columns, `${columns}: ${line}`)
    }
  }
})

test('a terminal of unknown width has 80 columns', async () => {
  assert.equal((await ran(['help', 'replay'], [], 0)).out, (await ran(['help', 'replay'], [], 80)).out)
})

test('a terminal gets a progress line, which is erased at the end', async () => {
  const { code, out, err } = await ran(['replay', '-'], [log({ '192.0.2.1': 20 })], 80)
  assert.is(code, 0)
  assert.match(err, 'reading: 0 lines')
  assert.ok(err.endsWith('\x1b[1G\x1b[2K'))
  assert.not.match(out, '\x1b')
})

test('the progress line is erased before an error is printed', async () => {
  const { code, err } = await ran(['replay', '-'], [gzipSync(log({ '192.0.2.1': 20 })).subarray(0, 40)], 80)
  assert.is(code, 2)
  assert.match(err, 'reading: 0 lines')
  assert.match(err, '\x1b[1G\x1b[2Kmillrace: standard input: damaged or truncated')
})

test('other outputs get no progress and no escape sequences', async () => {
  const text = log({ '192.0.2.1': 20, '\x1b[31mred': 20 })
  for (const options of [[], ['--json']]) {
    const { out, err } = await replayed(text, '--limit', '3', ...options)
    assert.is(err, '')
    assert.ok(out.length > 0)
    assert.not.match(out, '\x1b')
  }
})

test.run()
