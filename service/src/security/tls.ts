// The files of TLS.
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { OptionError } from '../options/option.js'
import type { Settings } from '../options/table.js'

const NAMES = ['tlsCert', 'tlsKey', 'tlsClientCa'] as const
type TlsSettings = Pick<Settings, (typeof NAMES)[number]>

/** The files of TLS that the options name. */
export const tlsFilesOf = (settings: TlsSettings): string[] => NAMES.flatMap((name) => settings[name] ?? [])

/** Their content as it is now. @throws OptionError for files that can't be read, or don't belong together */
export function tlsOf(settings: TlsSettings) {
  try {
    const [cert, key, ca] = NAMES.map((name) => settings[name] && readFileSync(settings[name]))
    const clients = { ca, requestCert: true, rejectUnauthorized: true }
    const read = { cert, key, ...(ca && clients) }
    createSecureContext(read)
    return read
  } catch (error) {
    const files = tlsFilesOf(settings).join(', ')
    throw new OptionError(
      `${NAMES.join(', ')}: expected PEM files, a certificate and its key, got ${files}: ${(error as Error).message}`,
    )
  }
}
