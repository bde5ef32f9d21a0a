/**
 * The option `integrity` of `fetch` (Subresource Integrity, https://www.w3.org/TR/sri/). It is about the last
 * answer, and `fetch` would compare it with each redirect, as these are followed here.
 */

/** From the weakest to the strongest. */
const ALGORITHMS = ['SHA-256', 'SHA-384', 'SHA-512']
const METADATA = /^sha(256|384|512)-([A-Za-z\d+/_-]+={0,2})(?:\?[\x21-\x7e]*)?$/

/** Whether bytes are what the metadata say: one of the hashes of the strongest algorithm is theirs. */
export async function hasIntegrity(bytes: ArrayBuffer, metadata: string): Promise<boolean> {
  const hashes = metadata.split(/[\t\n\f\r ]+/).flatMap((text) => {
    const [, bits, hash = ''] = METADATA.exec(text) ?? []
    return bits === undefined ? [] : [{ strength: ALGORITHMS.indexOf(`SHA-${bits}`), hash }]
  })
  if (hashes.length === 0) return true // nothing that is known: as without metadata
  const strongest = Math.max(...hashes.map(({ strength }) => strength))
  const digest = Buffer.from(await crypto.subtle.digest(ALGORITHMS[strongest]!, bytes))
  return hashes.some(
    ({ strength, hash }) => strength === strongest && digest.equals(Buffer.from(hash, 'base64')),
  )
}
