import { algorithmOf, createDigest, type Digest, formatDigest } from '../../proof/digest.js'
import type { Peer, PeerRequest } from './peer.js'

/**
 * Reads a range from a peer once more, discards it, and compares it with the peer's own digest. Resolves with a
 * description when they differ: then the peer's file is damaged, not the connection.
 */
export async function checkDonor(
  peer: Peer,
  request: Pick<PeerRequest, 'path' | 'signal'> & { readonly offset: number; readonly length: number },
): Promise<{ readonly expected: string; readonly found: string } | undefined> {
  const { path, signal, offset, length } = request
  let expected: string | undefined
  let digest: Digest | undefined
  const outcome = await peer.read({
    path,
    signal,
    part: { offset, length },
    range: { offset, length },
    isWaitedFor: false,
    held: undefined,
    isStaging: () => false,
    beganMs: peer.nowMs(),
    onFacts: () => {},
    onDigest: (given) => {
      expected = given.digest
      digest = createDigest(algorithmOf(expected))
    },
    sink: (chunk) => {
      digest?.update(chunk)
      return 0
    },
  })
  if (outcome !== 'done' || expected === undefined || digest === undefined) return undefined
  const found = formatDigest(digest.algorithm, digest.finish())
  return found === expected ? undefined : { expected, found }
}
