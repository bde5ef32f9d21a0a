import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { log, logged, ran } from './streams.js'

const replayed = (input: string, ...options: string[]) => ran(['replay', '-', ...options], [input])

test('--compare fixed-window shows the burst that a fixed window admits at a boundary', async () => {
  const text = [...Array(10).fill(59), ...Array(12).fill(60)]
    .map((second) => logged('192.0.2.1', second))
    .join('\n')
  const options = ['--limit', '10', '--window', '1m', '--compare', 'fixed-window']
  const { refused, fixedWindow } = JSON.parse((await replayed(text, ...options, '--json')).out)
  assert.is(refused, 12)
  assert.equal(fixedWindow, { refused: 2, mostInWindow: 20, clientsOver: 1 })
  const { out } = await replayed(text, ...options)
  assert.match(out, '│ fixed-window   │       2 │         20 │            1 │')
  assert.not.match((await replayed(text, '--limit', '10')).out, 'fixed-window')
})

test('--compare takes several algorithms, and prints a line and an entry for each', async () => {
  const text = [...Array(10).fill(59), ...Array(12).fill(60)]
    .map((second) => logged('192.0.2.1', second))
    .join('\n')
  const options = [
    '--limit',
    '10',
    '--compare',
    'fixed-window,token-bucket',
    '-c',
    'sliding-window',
    '-b',
    '6',
  ]
  const { code, out } = await replayed(text, ...options)
  assert.is(code, 0)
  assert.match(
    out,
    /│ sliding-window │ +12 │ +10 │ +0 │\n│ fixed-window +│ +2 │ +20 │ +1 │\n│ token-bucket +│ +16 │ +6 │ +0 │/,
  )
  const { compared, fixedWindow } = JSON.parse((await replayed(text, ...options, '--json')).out)
  assert.equal(compared, [
    { algorithm: 'fixed-window', refused: 2, mostInWindow: 20, clientsOver: 1 },
    { algorithm: 'token-bucket', refused: 16, mostInWindow: 6, clientsOver: 0 },
    { algorithm: 'sliding-window', refused: 12, mostInWindow: 10, clientsOver: 0 },
  ])
  assert.equal(fixedWindow, { refused: 2, mostInWindow: 20, clientsOver: 1 })
  const other = await replayed(text, '--limit', '10', '-c', 'sliding-counter', '--json')
  assert.is(JSON.parse(other.out).fixedWindow, undefined)
})

test('--algorithm replays with any algorithm, and its options', async () => {
  const text = log({ '192.0.2.1': 30 })
  const found = async (...options: string[]) => {
    const { code, out, err } = await replayed(text, '-l', '4', '-w', '10s', ...options, '--json')
    assert.equal([code, err], [0, ''], options.join(' '))
    const { algorithm, align, burst, edge, refused, refusedTooEarly } = JSON.parse(out)
    return [algorithm, align, burst, edge, refused, refusedTooEarly]
  }
  const none = undefined
  assert.equal(await found('-a', 'sliding-window'), ['sliding-window', none, none, 'strict', 18, 0])
  assert.equal(await found('-a', 'fixed-window'), ['fixed-window', 'clock', none, none, 18, none])
  assert.equal(await found('-a', 'fixed-window', '--align', 'first'), [
    ...['fixed-window', 'first', none, none, 18, none],
  ])
  assert.equal(await found('--algorithm', 'token-bucket'), ['token-bucket', none, none, none, 15, none])
  assert.equal(await found('-a', 'leaky-bucket', '--burst', '1'), ['leaky-bucket', none, 1, none, 20, none])
  assert.equal((await found('-a', 'sliding-counter')).slice(0, 4), ['sliding-counter', none, none, none])
  const { out } = await replayed(text, '-l', '4', '-w', '10s', '-a', 'token-bucket', '-b', '2')
  assert.match(out, /^Limit: 4 requests per client in 10s, token-bucket, burst 2\n/)
})

test('--align sets where a fixed window begins', async () => {
  // From the 50th second on: the clock's minute ends in the middle.
  const text = Array.from({ length: 20 }, (_, i) => logged('192.0.2.1', 50 + i)).join('\n')
  const refused = async (...options: string[]) =>
    JSON.parse((await replayed(text, '-l', '8', '-a', 'fixed-window', ...options, '--json')).out).refused
  assert.equal(
    [await refused(), await refused('--align', 'clock'), await refused('--align', 'first')],
    [4, 4, 12],
  )
})

test.run()
