// run: also-full
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { ADM, CLAIMED, FREE, HEADER, NAMED, NAMES_AT, shapeFor } from '#millrace/memory/layout.js'
import { test } from '../native/addon-test.js'
import { sized } from '../size.js'
import { type ErrorThere, folder, Member } from './processes.js'

const at = folder()
const DEATHS = sized({ quick: 1, full: 3 })
const options = (file: string) => ({ limit: 10, window: '1h' as const, maxKeys: 100, shared: { file } })

/** A module that kills its process before or after the first call of one function of `node:fs`. */
function killer(call: string, when: 'before' | 'after'): string {
  const file = at(`${call}-${when}.mjs`)
  writeFileSync(
    file,
    `import fs from 'node:fs'
     import { syncBuiltinESMExports } from 'node:module'
     const { ${call}: done } = fs
     fs.${call} = (...args) => {
       const isOurs = !String(args[0]).endsWith('.js') && process.env.ARMED === '1'
       if (isOurs && '${when}' === 'before') process.kill(process.pid, 'SIGKILL')
       const result = done(...args)
       if (isOurs) process.kill(process.pid, 'SIGKILL')
       return result
     }
     syncBuiltinESMExports()`,
  )
  return file
}

const STEPS: [call: string, when: 'before' | 'after'][] = [
  ['fchmodSync', 'before'],
  ['ftruncateSync', 'after'],
  ['writeSync', 'before'],
  ['writeSync', 'after'],
  ['fsyncSync', 'after'],
  ['renameSync', 'before'],
  ['renameSync', 'after'],
]
for (const [call, when] of sized({ quick: [STEPS[1]!, STEPS[5]!], full: STEPS })) {
  test(`a process killed ${when} ${call} while it creates the file does not prevent the next one from creating it`, async () => {
    const file = at(`${call} ${when}`)
    const maker = await Member.start(['--import', killer(call, when)], { ARMED: '1' })
    await maker.open(options(file)).then(
      () => assert.unreachable('it lived'),
      (error: ErrorThere) => assert.is(error.code, 'ENDED'),
    )
    assert.is(await maker.ended(), 'SIGKILL')
    assert.is(existsSync(file), call === 'renameSync' && when === 'after')
    const next = await Member.start()
    await next.open(options(file))
    assert.is(await next.check('key', 12), 10)
    assert.not(existsSync(`${file}.new`))
    await next.kill()
  })
}

test('ways claimed by dead processes are freed by the next process that has the file alone, not before', async () => {
  const file = at('claimed')
  const small = { ...options(file), maxKeys: 1, onFull: 'deny' as const } // two sets of 16 ways
  const survivor = await Member.start()
  await survivor.open(small)
  for (let death = 0; death < DEATHS; death++) await dieClaiming(small, `dead ${death}`)
  assert.is((await stats(survivor)).lostWays, DEATHS)
  assert.is(await countRoom(survivor, 'key'), 32 - DEATHS)
  const other = await Member.start()
  await other.open(small)
  assert.is((await stats(other)).lostWays, DEATHS, 'not alone')
  await Promise.all([survivor.kill(), other.kill()])
  const alone = await Member.start()
  await alone.open(small)
  assert.is((await stats(alone)).lostWays, 0)
  assert.is(await countRoom(alone, 'more'), DEATHS)
  assert.is(await alone.call('usage', 'key 0'), 1)
  await alone.kill()
})

test('a process that has closed its limiter no longer shares the file', async () => {
  const file = at('closed')
  const closed = await Member.start()
  await closed.open(options(file))
  await dieClaiming(options(file), 'key')
  await closed.call('close')
  const next = await Member.start()
  await next.open(options(file))
  assert.is((await stats(next)).lostWays, 0)
  await Promise.all([closed.kill(), next.kill()])
})

test('a table whose ways were all claimed by dead processes has room again and keeps its counts', async () => {
  const file = at('all claimed')
  const small = { ...options(file), maxKeys: 1, onFull: 'deny' as const }
  const first = await Member.start()
  await first.open(small)
  await first.kill()
  // The state after that many deaths, with the words that a death leaves (see the test above).
  const { bytes, words } = contents(file)
  const shape = shapeFor(3_600_000, 60, 2)
  for (let way = 0; way < shape.ways; way++)
    words[shape.waysAt + way * shape.wayWords + ADM] = CLAIMED | (1 << 24)
  words[HEADER.CLAIMING] = shape.ways
  words[HEADER.KEYS] = 2 // they died before they subtracted these two
  words[NAMES_AT] = 77 // one had a key with counts before
  words[shape.waysAt + ADM]! |= 3
  writeFileSync(file, bytes)
  const next = await Member.start()
  await next.open(small)
  const freed = contents(file).words
  assert.is(freed[HEADER.KEYS], 0)
  const found = Array.from(
    { length: shape.ways },
    (_, way) => freed[shape.waysAt + way * shape.wayWords + ADM],
  )
  assert.equal(found, [(2 << 24) | FREE | 3, ...Array.from({ length: 31 }, () => 0)])
  assert.is(await countRoom(next, 'key'), shape.ways)
  await next.kill()
})

async function dieClaiming(small: ReturnType<typeof options>, key: string): Promise<void> {
  const doomed = await Member.start()
  await doomed.open(small)
  await doomed.request({ do: 'die at', state: NAMED })
  await doomed.check(key, 1).then(
    () => assert.unreachable('it lived'),
    (error: ErrorThere) => assert.is(error.code, 'ENDED'),
  )
  assert.is(await doomed.ended(), 'SIGKILL')
}

/** The number of keys that fit in the table. */
async function countRoom(member: Member, prefix: string): Promise<number> {
  let room = 0
  for (let i = 0; i < 64; i++) room += await member.check(`${prefix} ${i}`, 1)
  return room
}

function contents(file: string): { bytes: Buffer; words: Int32Array } {
  const bytes = readFileSync(file)
  return { bytes, words: new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4) }
}

const stats = async (member: Member) => (await member.call('stats')) as { lostWays: number }

test.run()
