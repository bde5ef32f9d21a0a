// The wall clock of a running process, moved from outside: Debian's libfaketime, which reads how far from a file.
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'

const LIBRARIES = '/usr/lib'
/** The one for processes with threads. */
const NAME = 'faketime/libfaketimeMT.so.1'

function library(): string {
  const folders = existsSync(LIBRARIES) ? readdirSync(LIBRARIES) : []
  const found = folders.map((folder) => join(LIBRARIES, folder, NAME)).find((file) => existsSync(file))
  const install = 'on Debian or Ubuntu, apt-get install -y faketime'
  assert.ok(
    found,
    `this test moves a server's wall clock with libfaketime, which is not installed: ${install}`,
  )
  return found
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
