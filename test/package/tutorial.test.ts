// run: full
// What docs/tutorial.md says that its reader sees.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRefused, withServers } from '../examples/program.js'
import { runNode } from './project.js'
import { readText, root } from './root.js'

const text = readText('docs/tutorial.md')
const programs = new Map(
  [...text.matchAll(/^```js\n\/\/ (\S+)\n([\s\S]*?)^```/gm)].map(([, name, code]) => [name!, code!]),
)

/** Writes a program into build/, which is inside of the package, so that `millrace` is the package itself. */
async function withProgram(name: string, use: (file: string) => Promise<void>): Promise<void> {
  const file = join(root, 'build', `tutorial-${process.pid}-${name}`)
  writeFileSync(file, programs.get(name)!)
  try {
    await use(file)
  } finally {
    rmSync(file)
  }
}

test('the tutorial has three programs', () => {
  assert.equal([...programs.keys()], ['server.mjs', 'decision.mjs', 'tour.mjs'])
})

test('the server answers 200 five times, then 429 with the headers that the tutorial shows', async () => {
  await withProgram('server.mjs', async (file) => {
    await withServers(
      file,
      1,
      async ([address]) => {
        const responses: Response[] = []
        for (let i = 0; i < 7; i++) responses.push(await fetch(address!))
        assert.equal(
          responses.map(({ status }) => status),
          [200, 200, 200, 200, 200, 429, 429],
        )
        assertRefused(responses[6]!, 11)
        assert.is(responses[6]!.headers.get('RateLimit-Remaining'), '0')
      },
      'SIGINT',
    )
  })
})

test('the decision is printed as the tutorial shows it', async () => {
  await withProgram('decision.mjs', async (file) => {
    const { code, out, err } = await runNode([file], root)
    assert.is(code, 0, err)
    const [, shown] = /^(\{\n {2}allowed: true,[\s\S]*?^\})/m.exec(text) ?? []
    const anyReset = (printed: string) => printed.trim().replace(/resetMs: \d+/, 'resetMs: ...')
    assert.is(anyReset(out), anyReset(shown!))
  })
})

test('the tour prints what its comments say', async () => {
  await withProgram('tour.mjs', async (file) => {
    const { code, out, err } = await runNode([file], root)
    assert.is(code, 0, err)
    const said = ['true 3 3660000', '3660000', 'Uint8Array(3) [ 1, 1, 1 ]', '0', 'true']
    assert.equal(out.trim().split('\n').slice(0, 5), said)
  })
})

test.run()
