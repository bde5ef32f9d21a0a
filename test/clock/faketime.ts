// Moves the wall clock of a running process from outside, by Debian's libfaketime, which reads the offset
// from a file.
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'

const LIBRARIES = '/usr/lib'
/** The library for processes with threads. */
const NAME = 'faketime/libfaketimeMT.so.1'
const MISSING =
  'moving the wall clock of a server needs libfaketime (on Debian or Ubuntu: apt-get install -y faketime)'

function library(): string | undefined {
  const folders = existsSync(LIBRARIES) ? readdirSync(LIBRARIES) : []
  return folders.map((folder) => join(LIBRARIES, folder, NAME)).find((file) => existsSync(file))
}

/**
 * Returns whether a test that needs the library must be skipped, and prints why. If every test must run
 * (MILLRACE_EVERY_TEST is set), it fails instead.
 */
export function isLeftOut(): boolean {
  if (library() !== undefined || process.env.MILLRACE_EVERY_TEST) return false
  console.log(`left out: ${MISSING}`)
  return true
}

export interface FakeTime {
  /** The environment of a process that uses this time. */
  readonly env: NodeJS.ProcessEnv
  /** Moves the process's clocks by this many seconds from the machine's, from its next reading on. */
  set(seconds: number): void
  remove(): void
}

/**
 * By default libfaketime moves CLOCK_REALTIME and CLOCK_MONOTONIC alike. Setting the time of a machine moves
 * only the first (`'wall'`). Suspension, a restored snapshot, or a broken machine may move both (`'both'`).
 */
export function fakeTime(clocks: 'wall' | 'both'): FakeTime {
  const preload = library()
  assert.ok(preload, MISSING)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-clock-'))
  const file = join(folder, 'offset')
  const set = (seconds: number) => {
    writeFileSync(`${file}.next`, `${seconds < 0 ? '' : '+'}${seconds}\n`)
    renameSync(`${file}.next`, file) // atomic: a reader never finds a partial file
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
