// run: also-long

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { logLines } from 'millrace-cli/dist/replay/log-lines.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-lines-'))
test.after(() => rmSync(folder, { recursive: true }))

const file = (name: string, content: string | Buffer) => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}
const stream = (...chunks: Buffer[]) => Readable.from(chunks, { objectMode: false })

async function read(path: string, stdin: NodeJS.ReadableStream = stream()): Promise<string[]> {
  const lines: string[] = []
  for await (const line of logLines(path, stdin, () => {})) lines.push(line)
  return lines
}

async function refusal(path: string, stdin?: NodeJS.ReadableStream): Promise<string> {
  try {
    await read(path, stdin)
  } catch (error) {
    assert.is((error as Error).constructor.name, 'UsageError')
    return (error as Error).message
  }
  throw new Error('it was read')
}

test('lines end with LF, CRLF or the end of the file', async () => {
  assert.equal(await read(file('lf', 'a\nb\n')), ['a', 'b'])
  assert.equal(await read(file('crlf', 'a\r\nb\r\n')), ['a', 'b'])
  assert.equal(await read(file('none', 'a\nb')), ['a', 'b'])
  assert.equal(await read(file('blank', 'a\n\nb\n')), ['a', '', 'b'])
})

test('an empty file has no line, and a file of one byte has one', async () => {
  assert.equal(await read(file('empty', '')), [])
  assert.equal(await read(file('byte', 'x')), ['x'])
  assert.equal(await read(file('empty.gz', gzipSync(''))), [])
})

test('gzip is recognized by its first bytes, not by the name', async () => {
  assert.equal(await read(file('packed.log', gzipSync('a\nb\n'))), ['a', 'b'])
  assert.equal(await read(file('plain.gz', 'a\nb\n')), ['a', 'b'])
  assert.equal(await read('-', stream(gzipSync('a\nb\n'))), ['a', 'b'])
})

test('all gzip members of a file are read', async () => {
  assert.equal(await read(file('members', Buffer.concat([gzipSync('a\nb'), gzipSync('c\nd')]))), [
    'a',
    'bc',
    'd',
  ])
})

test('the lines do not depend on the chunks of the stream', async () => {
  const text = fc
    .array(fc.constantFrom('a', '€', '\n', '\r\n', '"'), { maxLength: 40 })
    .map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(text, fc.boolean(), fc.integer({ min: 1, max: 9 }), async (text, isZipped, size) => {
      const bytes = isZipped ? gzipSync(text) : Buffer.from(text)
      const chunks = []
      for (let i = 0; i < bytes.length; i += size) chunks.push(bytes.subarray(i, i + size))
      const expected = text.split(/\r?\n/)
      if (expected.at(-1) === '') expected.pop()
      assert.equal(await read('-', stream(...chunks)), expected)
    }),
  )
})

test('damaged or truncated gzip is an error with the name', async () => {
  const packed = gzipSync('a line\n'.repeat(2_000))
  for (const length of [2, 9, 10, 20, packed.length - 8, packed.length - 1]) {
    const path = file('cut', packed.subarray(0, length))
    assert.is(await refusal(path), `${path}: damaged or truncated gzip data`)
  }
  const damaged = Buffer.from(packed)
  damaged[packed.length - 6]! ^= 1 // the checksum
  assert.match(await refusal('-', stream(damaged)), /^standard input: damaged or truncated/)
})

test('an unreadable file is an error with the name', async () => {
  assert.is(await refusal(folder), `${folder}: is a directory; expected the path of an access log`)
  const missing = join(folder, 'missing')
  assert.match(await refusal(missing), /: no such file; expected the path of an access log, or - for/)
  assert.match(await refusal(join(file('plain', 'a'), 'below')), /ENOTDIR/)
})

test('onBytes gets the bytes read and the size of the file', async () => {
  const bytes = gzipSync('a line\n'.repeat(100_000))
  const path = file('sized', bytes)
  const reports: [number, number | undefined][] = []
  for await (const _ of logLines(path, stream(), (read, all) => reports.push([read, all])));
  assert.equal(reports.at(-1), [bytes.length, bytes.length])
  for await (const _ of logLines('-', stream(bytes), (read, all) => reports.push([read, all])));
  assert.equal(reports.at(-1), [bytes.length, undefined])
})

test('lines are truncated at 65,536 characters, and the next line is complete', async () => {
  for (const length of [65_535, 65_536, 65_537, 1_000_000]) {
    const kept = Math.min(length, 65_536)
    for (const end of ['\n', '\r\n', '']) {
      const lines = await read(file('long', `a\n${'x'.repeat(length)}${end}${end && 'b'}`))
      assert.equal(
        lines.map((line) => line.length),
        end === '' ? [1, kept] : [1, kept, 1],
        `${length}${end}`,
      )
    }
  }
})

test('a long line is truncated at the same character for all chunks', async () => {
  const bytes = Buffer.from(`${'€'.repeat(70_000)}\nb\n`)
  for (const size of [999, 65_536, 200_000]) {
    const chunks = []
    for (let i = 0; i < bytes.length; i += size) chunks.push(bytes.subarray(i, i + size))
    assert.equal(await read('-', stream(...chunks)), ['€'.repeat(65_536), 'b'], String(size))
  }
})

test('a byte order mark at the start is removed; elsewhere it is kept', async () => {
  assert.equal(await read(file('bom', '\ufeffa\n\ufeffb\n')), ['a', '\ufeffb'])
})

test('no other character ends a line', async () => {
  assert.equal(await read(file('others', 'a\u2028b\u2029c\u0085d\n')), ['a\u2028b\u2029c\u0085d'])
})

test.run()
