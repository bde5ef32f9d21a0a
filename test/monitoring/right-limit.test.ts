// run: full
// Each step of docs/how-to/right-limit.md, in its order, with the commands of the page.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withServers } from '../examples/program.js'
import { run } from '../package/project.js'
import { readText, root } from '../package/root.js'
import { poll } from '../redis/poll.js'
import { shellBlocks } from './typed.js'

const PAGE = 'docs/how-to/right-limit.md'
const STORE = '/srv/api/limits'
const [start, watch, replay, live, own, enforce] = shellBlocks(PAGE)

test('a service without limits gets one by the steps of the page', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-right-limit-'))
  const program = join(root, 'build', `right-limit-${process.pid}.mjs`)
  const limits = join(folder, 'limits')
  const [, code] = /^```js\n\/\/ shadow\.mjs\n([\s\S]*?)^```/m.exec(readText(PAGE))!
  writeFileSync(program, code!)
  let address = ''
  /** Types lines of the page in the clone. */
  const type = async (lines: readonly string[]): Promise<string[]> => {
    const printed: string[] = []
    for (const line of lines) {
      const command = line
        .replace(STORE, limits)
        .replace('http://127.0.0.1:3000', address)
        .replace('npx millrace', `'${process.execPath}' cli/dist/main.js`)
      const { code, out, err } = await run('bash', ['-c', command], root)
      assert.is(code, 0, `${command}\n${out}${err}`)
      printed.push(out)
    }
    return printed
  }
  const ask = async (client: string, count: number): Promise<number> => {
    const headers = { 'x-client': client }
    const all = await Promise.all(Array.from({ length: count }, () => fetch(address, { headers })))
    return all.filter(({ status }) => status === 429).length
  }
  const decided = async (outcome: string): Promise<number> => {
    const [text] = await type(watch!)
    return Number(new RegExp(`outcome="${outcome}"\\} (\\d+)`).exec(text!)![1])
  }
  try {
    assert.equal(start, [`PORT=3000 LIMITS=${STORE} node shadow.mjs`])
    await withServers(
      program,
      1,
      async ([url]) => {
        address = url!
        // 1 and 2: nothing is refused, and counted what the limit of 20 would refuse
        assert.is(await ask('busy', 30), 0)
        assert.equal([await decided('admitted'), await decided('shadow_refused')], [20, 10])

        // 3: what the page says of the log
        const clients = (await type(replay!)).map((out) => /clients refused +(\d+)/.exec(out)![1])
        assert.equal(clients, ['2', '1'])

        // 4: another limit, at once, and still nothing is refused
        await type(live!)
        let clients25 = 0
        const refusedOf30 = async (client: string) => {
          const before = await decided('shadow_refused')
          assert.is(await ask(client, 30), 0)
          return (await decided('shadow_refused')) - before
        }
        await poll(async () => (await refusedOf30(`new-${clients25++}`)) === 5, 'the limit of 25')
        await type(own!)
        await poll(async () => (await refusedOf30('importer')) === 0, 'the limit of the importer')

        // 5: enforced, with what has been used
        await type(enforce!)
        await poll(async () => (await ask('enforced', 30)) > 0, 'a refusal')
        const before = await decided('refused')
        assert.ok(before > 0)
        assert.is(await ask('enforced', 10), 10)
        assert.is(await decided('refused'), before + 10)
        assert.is(await ask('importer', 5), 0)

        // and back
        await type([enforce!.at(-1)!.replace(' --store', ' --shadow --store')])
        await poll(async () => (await ask('enforced', 3)) === 0, 'shadow again')
      },
      'SIGTERM',
      { env: { LIMITS: limits } },
    )
  } finally {
    rmSync(program, { force: true })
    rmSync(folder, { recursive: true, maxRetries: 5 })
  }
})

test.run()
