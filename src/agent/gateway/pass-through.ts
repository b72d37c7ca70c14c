import { setTimeout as sleep } from 'node:timers/promises'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { createDigest, type Digest } from '../../proof/digest.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import { planProof } from '../../proof/plan-proof.js'
import { withRetries } from '../../sources/retry.js'
import type { Source } from '../../sources/source.js'
import type { GatewayClient } from './gateway-client.js'
import { type AskedObject, headersOf, missing } from './object-answer.js'
import type { ObjectAnswer } from './plan-object-answer.js'

/** A source that sends nothing for so long while it is passed through has stalled, ms. */
const STALL_TIMEOUT_MS = 60_000
/** When more than this waits for a slow client, the source waits, too, bytes. */
const MAX_WAITING_BYTES = 1024 * 1024
/** How long the source waits, ms: at first, and at most. A chunk follows each wait, even if the client read nothing. */
const WAIT_MS = 10
const MAX_WAIT_MS = 1000

/** An object that is passed through, and to whom. */
interface PassedObject {
  readonly entry: ManifestEntry
  readonly answer: Exclude<ObjectAnswer, { status: 304 }>
  readonly client: GatewayClient & { readonly asked: AskedObject }
}

/**
 * Sends a range while it arrives from the source; an attempt that breaks off is gone on with where it ended. The checksum of
 * a whole object is handed to a client that asks for checksums, as the source would, and compared here: the last bytes
 * are held back until it fits, so that a client never has all of an object whose bytes changed on the way.
 */
export async function passThrough(
  source: Pick<Source, 'openFetcher'>,
  { entry, answer, client }: PassedObject,
  onDamage: (failure: DscError) => void,
): Promise<void> {
  const { asked, request, response } = client
  const signal = client.untilGone()
  const fetcher = await source.openFetcher({ connections: 1 })
  let facts: ObjectFacts | undefined
  let check: WholeCheck | undefined
  let last: Buffer | undefined
  let passedBytes = 0
  let waitMs = 0
  const begin = () => {
    if (response.headersSent) return
    check = answer.status === 200 ? WholeCheck.plan(entry, facts) : undefined
    response.writeHead(answer.status, headersOf({ asked, headers: request.headers, facts }, entry, answer))
  }
  try {
    await withRetries(
      () =>
        fetcher.fetch({
          key: entry.key,
          etag: entry.etag,
          versionId: entry.versionId,
          checksum: entry.checksum,
          sizeBytes: entry.sizeBytes,
          offset: answer.offset + passedBytes,
          length: answer.length - passedBytes,
          stallTimeoutMs: STALL_TIMEOUT_MS,
          signal,
          onFacts: (found) => {
            facts ??= found
          },
          sink: (chunk) => {
            begin()
            check?.update(chunk)
            if (last) response.write(last)
            last = Buffer.from(chunk) // its memory takes the next bytes
            passedBytes += chunk.length
            const isSlow = response.writableLength > MAX_WAITING_BYTES
            waitMs = isSlow ? Math.min(MAX_WAIT_MS, Math.max(WAIT_MS, 2 * waitMs)) : 0
            return waitMs
          },
        }),
      { signal },
    )
    const damage = check?.findDamage()
    if (damage !== undefined) {
      const problem = `${entry.key} did not come as the source has it (${damage}): its answer is cut off`
      onDamage(new DscError('CHECKSUM_MISMATCH', problem))
      response.destroy()
      return
    }
    if (last) response.write(last)
    while (response.writableLength > MAX_WAITING_BYTES && !signal.aborted) await sleep(WAIT_MS)
    response.end()
  } catch (error) {
    // It went after it was listed.
    if (!response.headersSent && isDscError(error, 'SOURCE_NOT_FOUND')) throw missing(entry)
    throw error
  } finally {
    await fetcher.close()
  }
}

/** Compares an object that is read once, in order, with the facts that its source listed. */
class WholeCheck {
  readonly #digest: Digest
  readonly #expected: string

  private constructor(digest: Digest, expected: string) {
    this.#digest = digest
    this.#expected = expected
  }

  /** Undefined: the source says nothing that can be compared without parts. */
  static plan({ sizeBytes, etag }: ManifestEntry, facts: ObjectFacts | undefined): WholeCheck | undefined {
    if (facts === undefined) return undefined
    const proof = planProof({ sizeBytes, etag, partBytes: sizeBytes, facts })
    if (proof.kind !== 'whole' && proof.kind !== 'combine') return undefined
    return new WholeCheck(createDigest(proof.algorithm, sizeBytes), proof.expected)
  }

  update(chunk: Uint8Array): void {
    this.#digest.update(chunk)
  }

  /** The difference, for people. Call once, at the end. */
  findDamage(): string | undefined {
    const found = this.#digest.finish().toString('hex')
    if (found === this.#expected) return undefined
    return `expected ${this.#digest.algorithm} ${this.#expected}, found ${found}`
  }
}
