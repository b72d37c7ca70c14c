import { BlockSet, planBlockBytes } from '../cache/arrivals/block-set.js'
import { Manifest } from '../cache/manifest/manifest.js'
import type { ManifestEntry } from '../cache/manifest/manifest-entry.js'
import type { WireObject } from '../cache/sources/peer-wire.js'
import type { Copy } from '../model/copy.js'
import type { Urgency } from '../model/urgency.js'
import { isSameObject, type LocalObject, pathOf, type Range } from './local-copies.js'
import { StagerConnections } from './stager-connections.js'

/** How often a staging is looked at for what is due, ms. */
const LOOK_INTERVAL_MS = 50
/** How often it is looked at for everything that somebody waits for: many wait for long, ms. */
const LOOK_AT_ALL_INTERVAL_MS = 1000

/** `early`: not there in time, or the staging is over: ask again. `other`: it has no such object, or another version. */
type Arrived = LocalObject | 'early' | 'other'

interface Question {
  readonly object: WireObject
  readonly range: Range
}

interface Waiter extends Question {
  readonly urgency: Urgency
  readonly endMs: number
  /** Its stager says that it is written, or cannot be asked. */
  isDue: boolean
  readonly settle: (arrived: Arrived) => void
}

/**
 * Hands out parts of copies that are still being staged, as soon as they are written and proven, and has their stagers
 * fetch next what somebody waits for. Waiters for one staging share one look at its manifest.
 */
export class ArrivingObjects {
  /** Waiters, by the folder of the staging. */
  readonly #stagings = new Map<
    string,
    { readonly copy: Copy; readonly waiters: Set<Waiter>; lookedAtAllMs: number }
  >()
  readonly #stagers = new StagerConnections()
  #timer: NodeJS.Timeout | undefined

  /** Resolves once the range is there, at the latest after `limitMs`; with 0 it only looks. */
  async wait(
    copy: Copy,
    question: Question,
    { limitMs, urgency }: { readonly limitMs: number; readonly urgency: Urgency },
  ): Promise<Arrived> {
    const [found = 'early'] = lookAt(copy, [question]) ?? []
    if (found !== 'early') return found
    if (limitMs === 0) {
      if (urgency === 'wanted') void this.#askStager(copy, question, urgency)
      return found
    }
    return new Promise((resolve) => {
      const staging = this.#stagings.get(copy.directory) ?? { copy, waiters: new Set(), lookedAtAllMs: 0 }
      this.#stagings.set(copy.directory, staging)
      const settle = (arrived: Arrived) => {
        staging.waiters.delete(waiter)
        resolve(arrived)
      }
      const endMs = performance.now() + limitMs
      const waiter: Waiter = { ...question, urgency, endMs, isDue: false, settle }
      staging.waiters.add(waiter)
      void this.#want(copy, waiter)
      this.#timer ??= setInterval(() => this.#look(), LOOK_INTERVAL_MS)
    })
  }

  close(): void {
    clearInterval(this.#timer)
    for (const { waiters } of this.#stagings.values())
      for (const waiter of [...waiters]) waiter.settle('early')
    this.#stagers.close()
  }

  #look(): void {
    const nowMs = performance.now()
    for (const [directory, staging] of this.#stagings) {
      const { copy, waiters } = staging
      const isForAll = nowMs - staging.lookedAtAllMs >= LOOK_AT_ALL_INTERVAL_MS
      if (isForAll) staging.lookedAtAllMs = nowMs
      const waiting = [...waiters].filter(({ isDue }) => isDue || isForAll)
      const found = waiting.length > 0 ? lookAt(copy, waiting) : []
      // Published or given up: whoever waits asks again and is served from there, or elsewhere.
      if (found === undefined) this.#stagers.forget(directory)
      for (const [index, waiter] of waiting.entries()) {
        const arrived = found?.[index] ?? 'early'
        if (arrived !== 'early' || found === undefined || nowMs > waiter.endMs) waiter.settle(arrived)
      }
      if (waiters.size === 0) this.#stagings.delete(directory)
    }
    if (this.#stagings.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Tells the stager what is waited for; one that cannot be asked fetches it in its own order. */
  async #want(copy: Copy, waiter: Waiter): Promise<void> {
    const isWhole = waiter.range.length === waiter.object.sizeBytes
    const arrival = await this.#askStager(copy, waiter, waiter.urgency)
    if (arrival === 'there' && !isWhole) {
      // What is written is written down a moment later; a part is given with its digest, so that is waited for.
      const [found] = lookAt(copy, [waiter], 'written') ?? []
      if (found !== undefined && found !== 'early') waiter.settle(found)
    }
    waiter.isDue = true
    if (arrival !== 'gone') return
    // Nobody stages any more, or somebody else does: whoever waits asks again.
    for (const each of [...(this.#stagings.get(copy.directory)?.waiters ?? [])])
      if (each.object.key === waiter.object.key) each.settle('early')
  }

  /** Resolves once the stager says that it is there; undefined: it cannot be asked. */
  async #askStager({ directory }: Copy, { object, range }: Question, urgency: Urgency) {
    const client = await this.#stagers.find(directory)
    const isWhole = range.length === object.sizeBytes
    return client?.want(isWhole ? object.key : [object.key, range.offset, range.length], { urgency })
  }
}

/** Whether ranges that are no parts are known to be written, whatever the manifest says of them. */
type Known = 'written' | 'nothing'

/**
 * What of an arriving copy is there; undefined once it is one no more. The manifest is opened for the look only: the
 * stager could not publish while somebody holds it open.
 */
function lookAt(
  copy: Copy,
  questions: readonly Question[],
  known: Known = 'nothing',
): readonly Arrived[] | undefined {
  let manifest: Manifest | undefined
  try {
    const opened = Manifest.findPublished(copy.directory)
    manifest = opened
    return opened && questions.map((question) => lookFor(opened, { ...question, copy, known }))
  } catch {
    return questions.map(() => 'early') // it is being published or removed this moment
  } finally {
    manifest?.close()
  }
}

function lookFor(
  manifest: Manifest,
  { copy, object, range, known }: Question & { readonly copy: Copy; readonly known: Known },
): Arrived {
  const entry = manifest.find(object.key)
  if (!entry || entry.state === 'elsewhere' || !isSameObject(entry, object)) return 'other'
  const isWritten = () => !isPart(entry, range) && (known === 'written' || hasBlocks(manifest, entry, range))
  if (!isThere(manifest, entry, range) && !isWritten()) return 'early'
  return { copy, entry, part: manifest.parts.find(entry, range), path: pathOf(copy, entry) }
}

function isThere(manifest: Manifest, entry: ManifestEntry, range: Range): boolean {
  if (entry.state === 'present') return true
  if (entry.partBytes === null || range.length === 0) return false
  const first = Math.floor(range.offset / entry.partBytes)
  const last = Math.floor((range.offset + range.length - 1) / entry.partBytes)
  return manifest.parts.has(entry.id, first, last)
}

/** Whether the range is just one of the object's parts, or the parts are not known yet. */
function isPart({ partBytes, sizeBytes }: ManifestEntry, { offset, length }: Range): boolean {
  if (partBytes === null) return true
  return offset % partBytes === 0 && length === Math.min(partBytes, sizeBytes - offset)
}

function hasBlocks(manifest: Manifest, entry: ManifestEntry, range: Range): boolean {
  const { id, sizeBytes, partBytes, facts } = entry
  const bits = partBytes === null ? undefined : manifest.blocks.find(id)
  if (partBytes === null || bits === undefined) return false
  const blockBytes = planBlockBytes({ sizeBytes, partBytes, ignoresRanges: facts?.ignoresRanges === true })
  return new BlockSet(sizeBytes, blockBytes, bits).has(range)
}
