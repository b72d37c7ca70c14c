import { ArrivalClient } from '../cache/arrivals/arrival-client.js'
import { Manifest } from '../cache/manifest/manifest.js'
import type { ManifestEntry } from '../cache/manifest/manifest-entry.js'
import type { WireObject } from '../cache/sources/peer-wire.js'
import type { Copy } from '../model/copy.js'
import { isSameObject, type LocalObject, pathOf, type Range } from './local-copies.js'

/** How often a staging is looked at while somebody waits for a part of it, ms. */
const LOOK_INTERVAL_MS = 50
/** What a status calls those who ask agents. */
const READER_NAME = 'other nodes'

/** `early`: not there in time, or the staging is over: ask again. `other`: it has no such object, or another version. */
type Arrived = LocalObject | 'early' | 'other'

interface Question {
  readonly object: WireObject
  readonly range: Range
}

interface Waiter extends Question {
  readonly endMs: number
  readonly settle: (arrived: Arrived) => void
}

/**
 * Hands out parts of copies that are still being staged, as soon as they are written and proven, and has their stagers
 * fetch next what somebody waits for. Waiters for one staging share one look at its manifest.
 */
export class ArrivingObjects {
  /** Waiters, by the folder of the staging. */
  readonly #stagings = new Map<string, { readonly copy: Copy; readonly waiters: Set<Waiter> }>()
  readonly #stagers = new Map<string, Promise<ArrivalClient | undefined>>()
  #timer: NodeJS.Timeout | undefined

  /** Resolves once the range is there, at the latest after `limitMs`; with 0 it only looks. */
  async wait(copy: Copy, question: Question, limitMs: number): Promise<Arrived> {
    const [found = 'early'] = lookAt(copy, [question]) ?? []
    if (found !== 'early' || limitMs === 0) return found
    void this.#want(copy.directory, question.object.key)
    return new Promise((resolve) => {
      const staging = this.#stagings.get(copy.directory) ?? { copy, waiters: new Set() }
      this.#stagings.set(copy.directory, staging)
      const settle = (arrived: Arrived) => {
        staging.waiters.delete(waiter)
        resolve(arrived)
      }
      const waiter: Waiter = { ...question, endMs: performance.now() + limitMs, settle }
      staging.waiters.add(waiter)
      this.#timer ??= setInterval(() => this.#look(), LOOK_INTERVAL_MS)
    })
  }

  close(): void {
    clearInterval(this.#timer)
    for (const { waiters } of this.#stagings.values())
      for (const waiter of [...waiters]) waiter.settle('early')
    for (const opened of this.#stagers.values()) void opened.then((client) => client?.close())
    this.#stagers.clear()
  }

  #look(): void {
    const nowMs = performance.now()
    for (const [directory, { copy, waiters }] of this.#stagings) {
      const waiting = [...waiters]
      const found = lookAt(copy, waiting)
      // Published or given up: whoever waits asks again and is served from there, or elsewhere.
      if (found === undefined) this.#stagers.delete(directory)
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
  async #want(directory: string, key: string): Promise<void> {
    const known = this.#stagers.get(directory)
    let client = await known
    if (!client?.isOpen) {
      // Whoever met the same dead connection shares the new one.
      if (this.#stagers.get(directory) === known)
        this.#stagers.set(directory, ArrivalClient.open(directory, READER_NAME))
      client = await this.#stagers.get(directory)
    }
    if ((await client?.want(key)) !== 'gone') return
    // Nobody stages any more, or somebody else does: whoever waits asks again.
    for (const waiter of [...(this.#stagings.get(directory)?.waiters ?? [])])
      if (waiter.object.key === key) waiter.settle('early')
  }
}

/**
 * What of an arriving copy is there; undefined once it is one no more. The manifest is opened for the look only: the
 * stager could not publish while somebody holds it open.
 */
function lookAt(copy: Copy, questions: readonly Question[]): readonly Arrived[] | undefined {
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

function lookFor(manifest: Manifest, copy: Copy, { object, range }: Question): Arrived {
  const entry = manifest.find(object.key)
  if (!entry || entry.state === 'elsewhere' || !isSameObject(entry, object)) return 'other'
  if (!isThere(manifest, entry, range)) return 'early'
  return { copy, entry, part: manifest.findPart(entry, range), path: pathOf(copy, entry) }
}

function isThere(manifest: Manifest, entry: ManifestEntry, range: Range): boolean {
  if (entry.state === 'present') return true
  if (entry.partBytes === null || range.length === 0) return false
  const first = Math.floor(range.offset / entry.partBytes)
  const last = Math.floor((range.offset + range.length - 1) / entry.partBytes)
  return manifest.hasParts(entry.id, first, last)
}
