import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { log } from './streams.js'

const root = new URL('../../../', import.meta.url)
const main = fileURLToPath(new URL('cli/dist/main.js', root))
const example = fileURLToPath(new URL('examples/access.log', root))
const folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
const { FORCE_COLOR: _, NO_COLOR: __, ...ENVIRONMENT } = process.env
test.after(() => rmSync(folder, { recursive: true }))

function millrace(
  args: string[],
  { input = Buffer.alloc(0), closesStdout = false, env = {} as NodeJS.ProcessEnv } = {},
) {
  return new Promise<{ code: number | null; out: string; err: string }>((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], {
      stdio: 'pipe',
      env: { ...ENVIRONMENT, ...env },
    })
    let [out, err] = ['', '']
    child.stdout.on('data', (chunk) => (out += chunk))
    child.stderr.on('data', (chunk) => (err += chunk))
    child.stdin.on('error', () => {}) // the command may exit before it has read everything
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
    if (closesStdout) child.stdout.destroy()
    child.stdin.end(input)
  })
}

test('the example has three refused clients, and the strict limit admits none wrongly', async () => {
  const { code, out, err } = await millrace(['replay', example, '--limit', '10', '--window', '1m'])
  assert.equal([code, err], [0, ''])
  assert.match(out, 'clients refused   3 (')
  assert.match(out, 'unparsed lines    2\n')
  assert.match(out, '  wrongly admitted  0\n')
  assert.match(out, '│ 198.51.100.23 ')
  assert.not.match(out, '\x1b')
})

test('piped output has colour only with FORCE_COLOR', async () => {
  const coloured = async (env: NodeJS.ProcessEnv) =>
    (await millrace(['replay', example], { env })).out.includes('\x1b[31m')
  assert.equal(
    [await coloured({}), await coloured({ FORCE_COLOR: '1' }), await coloured({ FORCE_COLOR: '0' })],
    [false, true, false],
  )
})

test('a file, a gzipped file and standard input give the same figures', async () => {
  const text = log({ '192.0.2.1': 40, '2001:db8::1': 30 })
  const [plain, packed] = [join(folder, 'a.log'), join(folder, 'b.log')]
  writeFileSync(plain, text)
  writeFileSync(packed, gzipSync(text))
  const options = ['--limit', '10', '--json']
  const expected = await millrace(['replay', plain, ...options])
  assert.is(JSON.parse(expected.out).refused, 50)
  assert.equal(await millrace(['replay', packed, ...options]), expected)
  for (const input of [Buffer.from(text), gzipSync(text)])
    assert.equal(await millrace(['replay', '-', ...options], { input }), expected)
})

test('a usage error exits with 2 and prints no stack', async () => {
  const { code, out, err } = await millrace(['replay', join(folder, 'missing')])
  assert.equal([code, out], [2, ''])
  assert.match(err, /^millrace: [^\n]+\n$/)
})

test('a closed pipe is not an error', async () => {
  const { code, err } = await millrace(['replay', '-', '--limit', '1', '--json'], {
    input: Buffer.from(log({ '192.0.2.1': 40 })),
    closesStdout: true,
  })
  assert.equal([code, err], [0, ''])
})

test.run()
