import { setTimeout as sleep } from 'node:timers/promises'
import type { Asked } from '../../cache/arrivals/arrival-wire.js'
import { BlockSet, planBlockBytes } from '../../cache/arrivals/block-set.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Copy } from '../../model/copy.js'
import type { Urgency } from '../../model/urgency.js'
import { LOOK_MS } from '../../platform/poll.js'
import type { WireObject } from '../../sources/peer-wire.js'
import { isSameObject, type LocalObject, pathOf, type Range } from './local-copies.js'
import { StagerConnections } from './stager-connections.js'

/** Time between two looks on behalf of all waiters, in ms: many of them wait for long. */
const LOOK_AT_ALL_INTERVAL_MS = 1000

/** `early`: not there in time, or the download ended: ask again. `other`: no such object, or another version. */
type Arrived = LocalObject | 'early' | 'other'

interface Question {
  readonly object: WireObject
  readonly range: Range
}

interface Waiter extends Question {
  readonly endMs: number
  /** Its stager says that the range is written; the manifest may note it a moment later. */
  isWritten: boolean
  readonly settle: (arrived: Arrived) => void
}

interface Staging {
  readonly copy: Copy
  readonly waiters: Set<Waiter>
  /** Waiters that the next look is for: their stager says that the range is there, or does not answer. */
  readonly due: Set<Waiter>
  timer?: NodeJS.Timeout
  lookedMs: number
  lookedAtAllMs: number
}

/**
 * Hands out parts of copies that are still being staged, as soon as they are written and verified, and asks their
 * stagers to fetch next what somebody waits for. Opening a manifest costs more than reading it, so one look serves all
 * questions about a download that arrive within a moment.
 */
export class ArrivingObjects {
  /** By the folder of the download. */
  readonly #stagings = new Map<string, Staging>()
  readonly #stagers = new StagerConnections()

  /** Resolves once the range is there, or after `limitMs` at the latest; 0 means a single look. */
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

  /** Schedules the next look: soon if some waiter is due, else the periodic one for all. */
  #lookLater(staging: Staging): void {
    const { due, lookedMs, lookedAtAllMs } = staging
    const nextMs = due.size > 0 ? lookedMs + LOOK_MS.progress : lookedAtAllMs + LOOK_AT_ALL_INTERVAL_MS
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
      // Published or given up: the callers ask again and are served from the published copy, or by another node.
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

  /** Asks the stager to fetch the object next; a stager that does not answer fetches it in its own order. */
  async #want(staging: Staging, waiter: Waiter, urgency: Urgency): Promise<void> {
    const { object, range } = waiter
    let client = await this.#stagers.find(staging.copy.directory)
    // The record shows a download a moment before its stager answers.
    while (client === undefined && staging.waiters.has(waiter)) {
      this.#setDue(staging, waiter)
      await sleep(LOOK_MS.start, undefined, { ref: false })
      client = await this.#stagers.find(staging.copy.directory)
    }
    const isWhole = range.length === object.sizeBytes
    const asked: Asked = isWhole ? object.key : [object.key, range.offset, range.length]
    const arrival = await client?.want(asked, { urgency })
    waiter.isWritten = arrival === 'there' && !isWhole
    // The stager is gone, or another has taken over: the callers ask again.
    if (arrival === 'gone')
      for (const each of staging.waiters) if (each.object.key === object.key) each.settle('early')
    this.#setDue(staging, waiter)
  }

  #setDue(staging: Staging, waiter: Waiter): void {
    if (!staging.waiters.has(waiter)) return // already settled
    staging.due.add(waiter)
    this.#lookLater(staging)
  }
}

/**
 * Looks up the asked ranges in a copy that is being staged; undefined once that is over. The manifest is open only
 * during the look: the stager cannot publish while it is open.
 */
function lookAt(copy: Copy, questions: readonly Waiter[]): readonly Arrived[] | undefined {
  try {
    using manifest = Manifest.findPublished(copy.directory)
    return manifest && questions.map((question) => lookFor(manifest, copy, question))
  } catch {
    return questions.map(() => 'early') // being published or removed this moment
  }
}

function lookFor(manifest: Manifest, copy: Copy, { object, range, isWritten }: Waiter): Arrived {
  const entry = manifest.find(object.key)
  if (!entry || entry.state === 'elsewhere' || !isSameObject(entry, object)) return 'other'
  // A part is sent with its digest, so wait until the manifest has recorded it.
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

/** Whether the range is exactly one of the object's parts. True while the parts are not known yet. */
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
