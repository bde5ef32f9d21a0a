import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { logged, ran } from './streams.js'

test('every usage error prints one line on stderr, nothing on stdout, and exits with 2', async () => {
  const mistakes: [string[], RegExp][] = [
    [
      ['replay', '-', '--limit', '0'],
      /--limit <units>' argument '0' is invalid. Expected a whole number of 1 or/,
    ],
    [['replay', '-', '--limit', 'x'], /argument 'x' is invalid/],
    [['replay', '-', '--limit', '-3'], /argument '-3' is invalid/],
    [['replay', '-', '--limit', '2.5'], /argument '2.5' is invalid/],
    [['replay', '-', '--limit', '5000000'], /limit: expected an integer from 1 to 4194302/],
    [['replay', '-', '--limit'], /'-l, --limit <units>' argument missing/],
    [
      ['replay', '-', '--window', '1y'],
      /argument '1y' is invalid. Expected a duration above 0, such as 250ms/,
    ],
    [['replay', '-', '--window', '0s'], /argument '0s' is invalid/],
    [['replay', '-', '--window', '-1m'], /argument '-1m' is invalid/],
    [['replay', '-', '--window', '20000000d'], /window: expected a duration of 1 ms to 10,000 years/],
    [['replay', '-', '--granularity', 'x'], /'-g, --granularity <duration>' argument 'x' is invalid/],
    [['replay', '-', '--granularity', '7s'], /granularity: .*the nearest is 7500ms/],
    [['replay', '-', '--granularity', '2m'], /granularity: expected at most the window, 1m/],
    [['replay', '-', '--edge', 'soft'], /Allowed choices are strict, smooth/],
    [
      ['replay', '-', '--key', 'cookie'],
      /'cookie' is invalid. Expected ip, user or path, or several of them joined by/,
    ],
    [['replay', '-', '--key', 'ip+ip'], /'ip\+ip' is invalid. Expected ip, user or path/],
    [['replay', '-', '--key', ''], /'' is invalid. Expected ip, user or path/],
    [
      ['replay', '-', '--compare', 'leaky'],
      /Allowed choices are sliding-window, .*, or several of them joined/,
    ],
    [['replay', '-', '--compare', 'fixed-window,fixed-window'], /Expected each algorithm once/],
    [['replay', '-', '--compare', ''], /argument '' is invalid. Allowed choices/],
    [['replay', '-', '--algorithm', 'leaky'], /Allowed choices are sliding-window, .*leaky-bucket/],
    [['replay', '-', '--align', 'last'], /Allowed choices are clock, first/],
    [['replay', '-', '--burst', '0'], /'-b, --burst <units>' argument '0' is invalid/],
    [['replay', '-', '-b', '3'], /burst: expected nothing beside algorithm: 'sliding-window'/],
    [['replay', '-', '--align', 'first'], /align: expected nothing beside algorithm: 'sliding-window'/],
    [
      ['replay', '-', '-a', 'fixed-window', '--edge', 'strict'],
      /edge: expected nothing beside algorithm: 'fixed-window'/,
    ],
    [
      ['replay', '-', '-a', 'token-bucket', '-g', '1s', '-c', 'fixed-window'],
      /granularity: expected nothing beside algorithm: 'token-bucket'/,
    ],
    [['replay', '-', '-a', 'token-bucket', '-b', '300000'], /burst: expected at most 262144 tokens at once/],
    [
      ['replay', '-', '-l', '3000000', '-c', 'fixed-window'],
      /--compare fixed-window: limit: expected at most 2097150/,
    ],
    [['replay', '-', '--window', '60'], /'60' is invalid. Add a unit, such as 60s, 60m or 60ms/],
    [['replay', '-', '--granularity', '1'], /'1' is invalid. Add a unit, such as 1s/],
    [
      ['replay', '-', '--rule', '10'],
      /--rule <limit\/window>' argument '10' is invalid. Expected a limit and a window, such as 10\/1s/,
    ],
    [['replay', '-', '--rule', '0/1s'], /argument '0\/1s' is invalid. Expected a whole number of 1 or more/],
    [['replay', '-', '--rule', '10/60'], /argument '10\/60' is invalid. Add a unit, such as 60s/],
    [['replay', '-', '--rule', '10/1y'], /argument '10\/1y' is invalid. Expected a duration above 0/],
    [['replay', '-', '--rule', '-1/1s'], /argument '-1\/1s' is invalid. Expected a limit and a window/],
    [['replay', '-', '--rule', ''], /argument '' is invalid. Expected a limit and a window/],
    [['replay', '-', '--rule'], /'-r, --rule <limit\/window>' argument missing/],
    [
      ['replay', '-', '--rule', '5000000/1s'],
      /--rule 5000000\/1s: limit: expected an integer from 1 to 4194302/,
    ],
    [
      ['replay', '-', '-r', '10/1s', '-r', '10/1h', '-g', '1m'],
      /--rule 10\/1s: granularity: expected at most the window, 1s/,
    ],
    [
      ['replay', '-', '--rule', '10/1m', '--rule', '10/60s'],
      /argument '10\/60s' is invalid. Expected another rule than 10\/1m, which is given already/,
    ],
    [
      ['replay', '-', '--rule', '10/1s', '--limit', '5'],
      /'-l, --limit <units>' argument '5' cannot be used with option '-r, --rule .* such as --rule 5\/1m/,
    ],
    [
      ['replay', '-', '-w', '1h', '--rule', '10/1s'],
      /'-w, --window <duration>' argument '1h' cannot be used with option '-r, --rule .* --rule 60\/1h/,
    ],
    [
      ['replay', '-', ...Array.from({ length: 17 }, (_, i) => ['--rule', `${i + 1}/1m`]).flat()],
      /'-r, --rule <limit\/window>' is given 17 times. Expected at most 16 rules/,
    ],
    [['replay', '-', '--top', '0'], /'-t, --top <count>' argument '0' is invalid/],
    [['replay', '-', '--limt', '3'], /unknown option '--limt' \(Did you mean --limit\?\)/],
    [['replay', '-', 'more'], /too many arguments for 'replay'/],
    [
      ['replay'],
      /missing <file>: path of an access log, or - for standard input \(see: millrace help replay\)/,
    ],
    [['replay', ''], /no such file/],
    [['replay', '/no/such/file'], /\/no\/such\/file: no such file/],
    [['replay', '/'], /\/: is a directory/],
    [['replai', '-'], /unknown command 'replai' \(Did you mean replay\?\) \(see: millrace --help\)/],
    [['help', 'replai'], /unknown command 'replai'/],
    [['--nope'], /unknown option '--nope'/],
  ]
  for (const [args, message] of mistakes) {
    const { code, out, err } = await ran(args, [logged('192.0.2.1', 0)])
    assert.equal([code, out], [2, ''], args.join(' '))
    assert.match(err, message)
    assert.match(err, /^millrace: [^\n]+\n$/)
  }
})

test('an invalid rule is an error before the log is read', async () => {
  const { code, err } = await ran(['replay', '/no/such/file', '--granularity', '7s'])
  assert.is(code, 2)
  assert.match(err, 'granularity')
})

test.run()
