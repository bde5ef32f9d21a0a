// Secrets that change while the engine runs.
import { unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { Settings } from './options/table.js'
import { tlsOf } from './security/tls.js'

const POLL_MS = 1_000

/** Uses the files of TLS as they are now, for new connections. */
export function reloadTls(server: Server, settings: Settings): void {
  if (server instanceof TlsServer && settings.tlsCert !== undefined) server.setSecureContext(tlsOf(settings))
}

/**
 * Calls `changed` when one of the files has changed, also if it is a link to a file that is put in its place, and none has
 * for a second: until then one may be half written.
 */
export function watchFiles(files: readonly string[], changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const listener = (now: { mtimeMs: number; ino: number }, before: { mtimeMs: number; ino: number }) => {
    if (now.mtimeMs === before.mtimeMs && now.ino === before.ino) return
    clearTimeout(timer)
    timer = setTimeout(changed, POLL_MS).unref()
  }
  for (const file of files) watchFile(file, { interval: POLL_MS, persistent: false }, listener)
  return () => {
    clearTimeout(timer)
    for (const file of files) unwatchFile(file, listener)
  }
}
