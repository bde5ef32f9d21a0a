import { execFileSync } from 'node:child_process'
import type { temporaryFolder } from './folder.js'

/**
 * Makes `NAME.pem` and `NAME.key` in a folder, for 127.0.0.1.
 * @param signer the name of the certificate that signs it; undefined: it signs itself
 */
export function makeCertificate(
  folder: ReturnType<typeof temporaryFolder>,
  name: string,
  signer?: string,
): void {
  const by = signer === undefined ? [] : ['-CA', `${signer}.pem`, '-CAkey', `${signer}.key`]
  const args = [
    ...[
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      `/CN=${name}`,
    ],
    ...['-addext', 'subjectAltName=IP:127.0.0.1', ...by],
    ...['-keyout', `${name}.key`, '-out', `${name}.pem`, '-days', '2'],
  ]
  execFileSync('openssl', args, { cwd: folder.path('.'), stdio: 'ignore' })
}
