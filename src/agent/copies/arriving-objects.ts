import { setTimeout as sleep } from 'node:timers/promises'
import type { Asked } from '../../cache/arrivals/arrival-wire.js'
import { BlockSet, planBlockBytes } from '../../cache/arrivals/block-set.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Copy } from '../../model/copy.js'
import type { Urgency } from '../../model/urgency.js'
import type { WireObject } from '../../sources/peer-wire.js'
import { isSameObject, type LocalObject, pathOf, type Range } from './local-copies.js'
import { StagerConnections } from './stager-connections.js'

/** A staging is looked at so often at most, for all questions that came meanwhile, ms. */
const LOOK_INTERVAL_MS = 50
/** How often it is looked at for everything that somebody waits for: many wait for long, ms. */
const LOOK_AT_ALL_INTERVAL_MS = 1000
/** How often a stager is looked for that cannot be asked yet, or no more, ms. */
const ASK_AGAIN_MS = 250

/** `early`: not there in time, or the staging is over: ask again. `other`: it has no such object, or another version. */
type Arrived = LocalObject | 'early' | 'other'

interface Question {
  readonly object: WireObject
  readonly range: Range
}

interface Waiter extends Question {
  readonly endMs: number
  /** Its stager says that the range is written, which may be written down later. */
  isWritten: boolean
  readonly settle: (arrived: Arrived) => void
}

interface Staging {
  readonly copy: Copy
  readonly waiters: Set<Waiter>
  /** Those that the next look is for: their stager says that it is there, or cannot be asked. */
  readonly due: Set<Waiter>
  timer?: NodeJS.Timeout
  lookedMs: number
  lookedAtAllMs: number
}

/**
 * Hands out parts of copies that are still being staged, as soon as they are written and proven, and has their stagers
 * fetch next what somebody waits for. Opening a manifest costs more than reading it, so that one look is for all
 * questions about a staging that came within a moment.
 */
export class ArrivingObjects {
  /** By the folder of the staging. */
  readonly #stagings = new Map<string, Staging>()
  readonly #stagers = new StagerConnections()

  /** Resolves once the range is there, at the latest after `limitMs`; with 0 it only looks. */
  wait(
    copy: Copy,
    question: Question,
    { limitMs, urgency }: { readonly limitMs: number; readonly urgency: Urgency },
  ): Promise<Arrived> {
    const nowMs = performance.now()
    const known = this.#stagings.get(copy.directory)
    const staging = known ?? { copy, waiters: new Set(), due: new Set(), lookedMs: 0, lookedAtAllMs: nowMs }
    if (!known) this.#stagings.set(copy.directory, staging)
    return new Promise((resolve) => {
      const settle = (arrived: Arrived) => {
        staging.waiters.delete(waiter)
        staging.due.delete(waiter)
        resolve(arrived)
      }
      const waiter: Waiter = { ...question, endMs: nowMs + limitMs, isWritten: false, settle }
      staging.waiters.add(waiter)
      if (limitMs === 0) staging.due.add(waiter)
      this.#lookLater(staging)
      if (limitMs > 0 || urgency === 'wanted') void this.#want(staging, waiter, urgency)
    })
  }

  close(): void {
    for (const staging of this.#stagings.values()) this.#end(staging)
    this.#stagers.close()
  }

  /** Looks as soon as it may, where something is due. */
  #lookLater(staging: Staging): void {
    const { due, lookedMs, lookedAtAllMs } = staging
    const nextMs = due.size > 0 ? lookedMs + LOOK_INTERVAL_MS : lookedAtAllMs + LOOK_AT_ALL_INTERVAL_MS
    clearTimeout(staging.timer)
    staging.timer = setTimeout(() => this.#look(staging), Math.max(0, nextMs - performance.now()))
  }

  #look(staging: Staging): void {
    const { copy, waiters } = staging
    const nowMs = performance.now()
    const isForAll = nowMs - staging.lookedAtAllMs >= LOOK_AT_ALL_INTERVAL_MS
    staging.lookedMs = nowMs
    if (isForAll) staging.lookedAtAllMs = nowMs
    const due = [...(isForAll ? waiters : staging.due)]
    const found = due.length > 0 ? lookAt(copy, due) : []
    for (const [index, waiter] of due.entries()) {
      const arrived = found?.[index] ?? 'early'
      if (arrived !== 'early' || nowMs >= waiter.endMs) waiter.settle(arrived)
    }
    if (found === undefined) {
      // Published or given up: whoever waits asks again and is served from there, or elsewhere.
      this.#end(staging)
      this.#stagers.forget(copy.directory)
    } else if (isForAll && waiters.size === 0) this.#end(staging)
    else this.#lookLater(staging)
  }

  #end({ copy, timer, waiters }: Staging): void {
    clearTimeout(timer)
    for (const waiter of waiters) waiter.settle('early')
    this.#stagings.delete(copy.directory)
  }

  /** Tells the stager what is waited for; one that cannot be asked fetches it in its own order. */
  async #want(staging: Staging, waiter: Waiter, urgency: Urgency): Promise<void> {
    const { object, range } = waiter
    let client = await this.#stagers.find(staging.copy.directory)
    // A staging is in the record a moment before it can be asked.
    while (client === undefined && staging.waiters.has(waiter)) {
      this.#setDue(staging, waiter)
      await sleep(ASK_AGAIN_MS, undefined, { ref: false })
      client = await this.#stagers.find(staging.copy.directory)
    }
    const isWhole = range.length === object.sizeBytes
    const asked: Asked = isWhole ? object.key : [object.key, range.offset, range.length]
    const arrival = await client?.want(asked, { urgency })
    waiter.isWritten = arrival === 'there' && !isWhole
    // Nobody stages any more, or somebody else does: whoever waits asks again.
    if (arrival === 'gone')
      for (const each of staging.waiters) if (each.object.key === object.key) each.settle('early')
    this.#setDue(staging, waiter)
  }

  #setDue(staging: Staging, waiter: Waiter): void {
    if (!staging.waiters.has(waiter)) return // it was settled meanwhile
    staging.due.add(waiter)
    this.#lookLater(staging)
  }
}

/**
 * What of an arriving copy is there; undefined once it is one no more. The manifest is opened for the look only: the
 * stager could not publish while somebody holds it open.
 */
function lookAt(copy: Copy, questions: readonly Waiter[]): readonly Arrived[] | undefined {
  let manifest: Manifest | undefined
  try {
    const opened = Manifest.findPublished(copy.directory)
    manifest = opened
    return opened && questions.map((question) => lookFor(opened, copy, question))
  } catch {
    return questions.map(() => 'early') // it is being published or removed this moment
  } finally {
    manifest?.close()
  }
}

function lookFor(manifest: Manifest, copy: Copy, { object, range, isWritten }: Waiter): Arrived {
  const entry = manifest.find(object.key)
  if (!entry || entry.state === 'elsewhere' || !isSameObject(entry, object)) return 'other'
  // A part is given with its digest, so that what is written down of it is waited for.
  const isThere =
    hasParts(manifest, entry, range) ||
    (!isPart(entry, range) && (isWritten || hasBlocks(manifest, entry, range)))
  if (!isThere) return 'early'
  return { copy, entry, part: manifest.parts.find(entry, range), path: pathOf(copy, entry) }
}

function hasParts(manifest: Manifest, entry: ManifestEntry, range: Range): boolean {
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
