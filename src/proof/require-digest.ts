import { SourceFailure } from '../failure/source-failure.js'
import type { DigestAlgorithm } from './digest.js'

/** Throws a transient CHECKSUM_MISMATCH unless `found` is the expected digest. */
export function requireDigest(
  key: string,
  proof: { readonly algorithm: DigestAlgorithm; readonly expected: string },
  found: Uint8Array,
): void {
  const hexadecimal = Buffer.from(found).toString('hex')
  const { expected } = proof
  if (hexadecimal === expected) return
  throw new SourceFailure(
    'CHECKSUM_MISMATCH',
    `${JSON.stringify(key)}: expected ${proof.algorithm} ${expected}, found ${hexadecimal} in the bytes received`,
    {
      isTransient: true,
      hint:
        proof.algorithm === 'md5'
          ? 'bytes change on the way: check proxies and memory of this node; or the store’s etags are no MD5 (encryption, --no-compat): then store objects with a checksum'
          : 'bytes change on the way: check proxies and memory of this node, then try again',
    },
  )
}
