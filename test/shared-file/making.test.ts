// Two real processes create one file: one stops at a step while the other goes on.
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import * as assert from 'uvu/assert'
import { test } from '../native/addon-test.js'
import { folder, Member } from './processes.js'

const at = folder()
const options = (file: string) => ({ limit: 10, window: '1h' as const, maxKeys: 100, shared: { file } })

/**
 * A module that stops its process before or after it first opens a file with a given name ending, until a
 * pipe is closed.
 */
function holder(when: 'before' | 'after', ending: string): { module: string; pipe: string } {
  const [module, pipe] = [at(`${when}${ending}.mjs`), at(`${when}${ending}.pipe`)]
  execFileSync('mkfifo', [pipe])
  writeFileSync(
    module,
    `import fs from 'node:fs'
     import { syncBuiltinESMExports } from 'node:module'
     const { openSync, readFileSync } = fs
     let held = false
     const hold = (path, when) => {
       if (held || when !== '${when}' || !String(path).endsWith(${JSON.stringify(ending)})) return
       held = true
       readFileSync(${JSON.stringify(pipe)})
     }
     fs.openSync = (...args) => {
       hold(args[0], 'before')
       const fd = openSync(...args)
       hold(args[0], 'after')
       return fd
     }
     syncBuiltinESMExports()`,
  )
  return { module, pipe }
}

for (const when of ['before', 'after'] as const) {
  for (const end of ['goes on', 'is killed'] as const) {
    test(`a process stopped ${when} it opens the unfinished file finds the file of another, which ${end}`, async () => {
      const file = at(`${when} ${end}`)
      const { module, pipe } = holder(when, '.new')
      const [held, other] = [await Member.start(['--import', module]), await Member.start()]
      const opening = held.open(options(file))
      const release: FileHandle = await open(pipe, 'w') // opens once the process reads the other end and is stopped
      await other.open(options(file))
      assert.is(await other.check('key', 6), 6)
      if (end === 'is killed') await other.kill()
      await release.close()
      await opening
      assert.is(await held.check('key', 9), 4)
      assert.not(existsSync(`${file}.new`))
      execFileSync('rm', [pipe])
      await held.kill()
      if (end === 'goes on') await other.kill()
    })
  }
}

test('a process stopped between opening and locking a file finds its replacement', async () => {
  const file = at('replaced.arena')
  const before = await Member.start()
  await before.open(options(file))
  assert.is(await before.check('key', 9), 9)
  const { module, pipe } = holder('after', '.arena')
  const held = await Member.start(['--import', module])
  const opening = held.open(options(file))
  const release = await open(pipe, 'w')
  await before.kill()
  rmSync(file)
  const other = await Member.start()
  await other.open(options(file))
  assert.is(await other.check('key', 6), 6)
  await release.close()
  await opening
  assert.is(await held.check('key', 9), 4)
  await Promise.all([held.kill(), other.kill()])
})

test.run()
