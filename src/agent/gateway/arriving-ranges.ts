import { setTimeout as sleep } from 'node:timers/promises'
import { type ArrivalOutcome, ArrivingReader } from '../../cache/arrivals/arriving-reader.js'
import type { ByteRange } from '../../cache/arrivals/block-set.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { isOfSqlite } from '../../manifest/manifest-file.js'
import type { Copy } from '../../model/copy.js'
import { LOOK_MS } from '../../platform/poll.js'
import { WHOLE_OBJECT_BYTES } from '../../proof/plan-parts.js'
import { planProof } from '../../proof/plan-proof.js'
import { PROVEN_ELSEWHERE } from '../../proof/prove-parts.js'

/** When to answer a range of a downloading object: once its bytes are verified, or once they are written. */
export type RangesTaken = 'proven' | 'unproven'

/** Maximum time between two looks at an object's progress in the manifest, in ms. */
const MAX_LOOK_MS = 1000

/** Waits for objects of copies that are still downloading, and for ranges of those that come in parts. */
export class ArrivingRanges {
  readonly #reader: ArrivingReader
  readonly #taken: RangesTaken

  constructor(options: { readonly taken: RangesTaken; readonly note: (sentence: string) => void }) {
    this.#taken = options.taken
    this.#reader = new ArrivingReader('the gateway', (key) => {
      if (options.taken === 'unproven')
        options.note(
          `${key}: ranges were answered before it was proven, and its source holds others; read it again`,
        )
    })
  }

  /** Resolves with `there` once the range can be read. `gone`: the copy was published or given up; locate it again. */
  async waitFor(
    copy: Copy,
    entry: ManifestEntry,
    range: ByteRange,
    signal: AbortSignal,
  ): Promise<ArrivalOutcome> {
    const { key, sizeBytes } = entry
    const isPart = range.length < sizeBytes
    if (isPart && this.#taken === 'unproven')
      return this.#reader.awaitAsked(copy, [key, range.offset, range.length], { signal })
    if (!isPart || sizeBytes <= WHOLE_OBJECT_BYTES) return this.#reader.awaitAsked(copy, key, { signal })
    const over = new AbortController()
    const either = AbortSignal.any([signal, over.signal])
    const parts = this.#waitForParts(copy, { key, range }, either)
    const whole = this.#reader.awaitAsked(copy, key, { signal: either })
    try {
      return await Promise.race([parts.then((areThere) => (areThere ? 'there' : whole)), whole])
    } finally {
      over.abort()
      for (const ended of [parts, whole]) ended.catch(() => {}) // nobody waits for the other one any more
    }
  }

  close(): void {
    this.#reader.close()
  }

  /** Whether the parts around a range are there, each verified on its own; false: only with the whole object. */
  async #waitForParts(
    copy: Copy,
    asked: { readonly key: string; readonly range: ByteRange },
    signal: AbortSignal,
  ): Promise<boolean> {
    let hasAsked = false
    for (let pauseMs: number = LOOK_MS.progress; ; pauseMs = Math.min(MAX_LOOK_MS, 2 * pauseMs)) {
      const look = lookAtParts(copy, asked)
      if (look.outcome !== 'coming') return look.outcome === 'there'
      signal.throwIfAborted()
      if (look.parts && !hasAsked) {
        const { offset, length } = look.parts
        await this.#reader.awaitAsked(copy, [asked.key, offset, length], { signal })
        hasAsked = true // the manifest notes written bytes a moment later
        pauseMs = LOOK_MS.progress
      }
      await sleep(pauseMs, undefined, { signal })
    }
  }
}

type PartsLook =
  | { readonly outcome: 'there' | 'never' }
  /** `parts`: the whole parts around the range, once they are planned. */
  | { readonly outcome: 'coming'; readonly parts?: ByteRange }

/** Opens the manifest only for the look: the stager cannot publish while it is open. */
function lookAtParts(
  copy: Copy,
  { key, range }: { readonly key: string; readonly range: ByteRange },
): PartsLook {
  using manifest = Manifest.findPublished(copy.directory)
  try {
    const entry = manifest?.find(key)
    if (!manifest || !entry) return { outcome: 'never' }
    return judgeParts(entry, manifest.parts.of(entry.id), range)
  } catch (error) {
    // On a full disk, SQLite cannot read a stager's writes: whole-object waiters learn of the end.
    if (isOfSqlite(error)) return { outcome: 'never' }
    throw error
  }
}

/**
 * Judges the parts around a range. A part counts as verified on its own if another node had verified its object, or if
 * the source has no checksum, so that no stronger check will ever come.
 */
export function judgeParts(
  entry: Pick<ManifestEntry, 'sizeBytes' | 'etag' | 'partBytes' | 'facts' | 'state'>,
  finished: ReadonlyMap<number, { readonly proof: string | null }>,
  { offset, length }: ByteRange,
): PartsLook {
  const { partBytes, facts, sizeBytes } = entry
  if (entry.state === 'present') return { outcome: 'there' }
  if (partBytes === null || facts === null) return { outcome: 'coming' }
  const proof = planProof({ sizeBytes, etag: entry.etag, partBytes, facts })
  const isOpen = proof.kind === 'size' || (proof.kind === 'digest-of-digests' && !proof.isCertain)
  const [first, end] = [Math.floor(offset / partBytes), Math.ceil((offset + length) / partBytes)]
  let areThere = true
  for (let number = first; number < end; number++) {
    const part = finished.get(number)
    if (part === undefined) areThere = false
    else if (!isOpen && part.proof !== PROVEN_ELSEWHERE) return { outcome: 'never' }
  }
  if (areThere) return { outcome: 'there' }
  const from = first * partBytes
  return { outcome: 'coming', parts: { offset: from, length: Math.min(end * partBytes, sizeBytes) - from } }
}
