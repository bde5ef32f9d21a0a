import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'
import { newFolder } from './stores.js'

const store = `${newFolder()}/limits`
const S = ['--store', `lmdb:${store}`]

test('every usage error prints one line that says what would be right, exits with 2, and makes no store', async () => {
  const mistakes: [string[], RegExp][] = [
    [['gett'], /unknown command 'gett' \(Did you mean get\?\) \(see: millrace help config\)/],
    [
      ['get', ...S],
      /missing <key>: the key of a client, or a prefix such as user:\* \(see: millrace config help get/,
    ],
    [
      ['get', 'a'],
      /missing option '-s, --store <url>'. Expected the URL of a store, such as --store lmdb:.\/limits/,
    ],
    [['get', '', ...S], /argument '' of <key> is invalid. Expected a key of 1 or more characters/],
    [['get', 'a', '-s', 'limits'], /--store: expected lmdb:PATH, .* or mongodb:\/\/.*, got "limits"/],
    [['set', 'a', '-s', 'http://x', '-r', '1/1s'], /--store: expected lmdb:PATH/],
    [
      ['set', 'a', ...S],
      /missing option '-l, --limit <units>'. Expected --limit and --window, or --rule, or --json/,
    ],
    [['set', 'a', ...S, '-l', '5'], /missing option '-w, --window <duration>'/],
    [
      ['set', 'a', ...S, '-l', '9000000', '-w', '1m'],
      /limit: expected an integer from 1 to 4194302.*, got 9000000/,
    ],
    [
      ['set', 'a', ...S, '-l', '5', '-w', '60'],
      /'-w, --window <duration>' argument '60' is invalid. Add a unit/,
    ],
    [['set', 'a', ...S, '-l', '5', '-w', '1m', '-a', 'leaky'], /algorithm: expected .*, got "leaky"/],
    [['set', 'a', ...S, '-l', '5', '-w', '1m', '-b', '7'], /burst: expected nothing beside/],
    [['set', 'a', ...S, '-l', '5', '-w', '1m', '-g', '7s'], /granularity: .*the nearest is 7500ms/],
    [
      ['set', 'a', ...S, '-r', '5'],
      /--rule <limit\/window>' argument '5' is invalid. Expected a limit and a window/,
    ],
    [
      ['set', 'a', ...S, '-r', '5/1m', '-l', '3'],
      /'-r, --rule <limit\/window>' cannot be used with option '-l, --limit/,
    ],
    [['set', 'a', ...S, '-r', '5/1m', '-r', '6/1h', '-g', '7s'], /--rule 5\/1m: granularity: expected/],
    [['set', 'a', ...S, '-r', 'none/1m'], /argument 'none\/1m' is invalid. Expected a limit and a window/],
    [['set', 'a', ...S, '-l', '-1', '-w', '1m'], /limit: expected an integer from 1 to 4194302/],
    [['set', 'a', ...S, '-l', '', '-w', '1m'], /limit: expected an integer from 1 to 4194302/],
    [['set', 'a', ...S, '--max', '5'], /unknown option '--max' \(Did you mean --limit\?\) \(see/],
    [['set', 'a', ...S, '--time-window', '5s'], /\(Did you mean --window\?\)/],
    [['set', 'a', ...S, '--zebra'], /unknown option '--zebra' \(see/],
    [['set', 'a', ...S, '--json', '{'], /--json: expected JSON such as \{"limit":100,"window":"1m"\}: /],
    [['set', 'a', ...S, '--json', '{"limit":5}'], /--json: window: expected/],
    [
      ['set', 'a', ...S, '--json', '{}', '-w', '1m'],
      /'--json <policy>' cannot be used with option '-w, --window/,
    ],
    [
      ['set', '', ...S, '-r', '1/1m'],
      /value '' is invalid for argument 'key'. Expected a string of 1 to 512 char/,
    ],
    [['set', 'x'.repeat(513), ...S, '-r', '1/1m'], /Expected a string of 1 to 512 char/],
    [
      ['set', 'a', ...S, '-r', '1/1m', '--if-version', 'x'],
      /argument 'x' is invalid. Expected the version .*, or none/,
    ],
    [['delete', ...S], /missing <key>: keys \(see: millrace config help delete\)/],
    [
      ['delete', 'a', 'b', '--if-version', '3', ...S],
      /'--if-version <version>' is given for 2 keys. Expected one key/,
    ],
    [
      ['delete', 'a', '--if-version', 'none', ...S],
      /argument 'none' is invalid. Expected the version of a policy, as/,
    ],
    [
      ['list', '--limit', '0', ...S],
      /'-n, --limit <count>' argument '0' is invalid. Expected a whole .* 1 to 10,000/,
    ],
    [
      ['list', '--prefix', '', ...S],
      /'-p, --prefix <text>' argument '' is invalid. Expected a string of 1 to 512/,
    ],
    [['import', ...S], /missing <file>: path of a file of policies, or - for standard input/],
    [['import', '/no/such', ...S], /\/no\/such: no such file; expected the path of a file of policies, or -/],
    [['import', '/', ...S], /\/: is a directory; expected the path of a file of policies/],
    [['import', '/no/such', '-s', 'x'], /--store: expected/],
    [['validate', 'file', ...S], /'-s, --store <url>' cannot be used with a file. Expected one of both/],
    [['validate'], /missing option '-s, --store <url>'/],
  ]
  for (const [args, message] of mistakes) {
    const { code, out, err } = await ran(['config', ...args])
    assert.equal([code, out], [2, ''], args.join(' '))
    assert.match(err, message)
    assert.match(err, /^millrace: [^\n]+\n$/)
    assert.not(existsSync(store), args.join(' '))
  }
})

test('without a subcommand it prints the help', async () => {
  const { code, out, err } = await ran(['config'])
  assert.equal([code, out], [2, ''])
  assert.match(err, /^Usage: millrace config \[options\] \[command\]/)
  assert.is((await ran(['help', 'config'])).out, err)
  assert.match((await ran(['config', 'help', 'set'])).out, /^Usage: millrace config set \[options\] <key>/)
})

test('a Redis that accepts connections and never answers is an error', async () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  try {
    const { code, err } = await ran(['config', 'list', '--store', `redis://127.0.0.1:${port}`])
    assert.match(err, /^millrace: redis:\S+: expected an answer within 5000 ms, got none\n$/)
    assert.is(code, 1)
  } finally {
    for (const socket of sockets) socket.destroy()
    silent.close()
  }
})

test.run()
