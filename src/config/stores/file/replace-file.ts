// Replaces a file by another one in one step: readers see the old text or the new one, and nothing in between.
import { randomBytes } from 'node:crypto'
import { type BigIntStats, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { readText } from './policy-file.js'

/**
 * Writes the text beside the file and renames it over, with the file's mode. False if the file does not have the
 * text `before` just before the rename; then nothing has changed.
 * @param onReplaced is called in the same turn as the rename
 */
export async function replaceFile(
  link: string,
  before: string,
  text: string,
  onReplaced: (stats: BigIntStats) => void,
): Promise<boolean> {
  const path = realpathSync(link) // a symbolic link stays one
  const name = `.${basename(path)}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`
  const temporary = join(dirname(path), name)
  let isRenamed = false
  try {
    const stats = await write(temporary, text, statSync(path))
    if (realpathSync(link) !== path || readText(path) !== before) return false
    renameSync(temporary, path)
    isRenamed = true
    onReplaced(stats)
  } finally {
    if (!isRenamed) rmSync(temporary, { force: true })
  }
  await syncFolder(dirname(path))
  return true
}

async function write(path: string, text: string, like: { mode: number; uid: number; gid: number }) {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    if (process.getuid?.() === 0) await file.chown(like.uid, like.gid)
    await file.chmod(like.mode & 0o7777)
    await file.sync()
    return await file.stat({ bigint: true })
  } finally {
    await file.close()
  }
}

/** A rename lasts when its folder is on disk. Windows has no such call, and no need of it. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
