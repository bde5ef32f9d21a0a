// The wall clock of a running process, moved from outside: Debian's libfaketime, which reads how far from a file.
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'

const LIBRARIES = '/usr/lib'
/** The one for processes with threads. */
const NAME = 'faketime/libfaketimeMT.so.1'
const MISSING =
  'moving the wall clock of a server needs libfaketime (on Debian or Ubuntu: apt-get install -y faketime)'

function library(): string | undefined {
  const folders = existsSync(LIBRARIES) ? readdirSync(LIBRARIES) : []
  return folders.map((folder) => join(LIBRARIES, folder, NAME)).find((file) => existsSync(file))
}

/**
 * Whether a test that needs the library is to be left out here, with a word that says so. Not where every test must run
 * (MILLRACE_EVERY_TEST is set): there it fails.
 */
export function isLeftOut(): boolean {
  if (library() !== undefined || process.env.MILLRACE_EVERY_TEST) return false
  console.log(`left out: ${MISSING}`)
  return true
}

export interface FakeTime {
  /** What a process needs in its environment to live by it. */
  readonly env: NodeJS.ProcessEnv
  /** Sets the process's clocks so many seconds off the machine's; from its next reading on. */
  set(seconds: number): void
  remove(): void
}

/**
 * By itself libfaketime moves CLOCK_REALTIME and CLOCK_MONOTONIC alike. A machine whose time is set moves the first
 * alone (`'wall'`); one that is suspended, restored from a snapshot or plainly broken may move both (`'both'`).
 */
export function fakeTime(clocks: 'wall' | 'both'): FakeTime {
  const preload = library()
  assert.ok(preload, MISSING)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-clock-'))
  const file = join(folder, 'offset')
  const set = (seconds: number) => {
    writeFileSync(`${file}.next`, `${seconds < 0 ? '' : '+'}${seconds}\n`)
    renameSync(`${file}.next`, file) // at once: a reader never finds half of it
  }
  set(0)
  return {
    env: {
      LD_PRELOAD: preload,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: clocks === 'wall' ? '1' : '0',
    },
    set,
    remove: () => rmSync(folder, { recursive: true }),
  }
}
