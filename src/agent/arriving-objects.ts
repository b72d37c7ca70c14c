import { Manifest } from '../cache/manifest/manifest.js'
import type { ManifestEntry } from '../cache/manifest/manifest-entry.js'
import type { WireObject } from '../cache/sources/peer-wire.js'
import type { Copy } from '../model/copy.js'
import { isSameObject, type LocalObject, pathOf, type Range } from './local-copies.js'

/** How often a staging is looked at while somebody waits for a part of it, ms. */
const LOOK_INTERVAL_MS = 50

/** Hands out parts of copies that are still being staged, as soon as they are written and proven. */
export interface ArrivingObjects {
  /** Resolves with the object once the range is there; undefined after `limitMs` or when the staging is over. */
  wait(
    copy: Copy,
    asked: { readonly object: WireObject; readonly range: Range },
    limitMs: number,
  ): Promise<LocalObject | undefined>
  close(): void
}

interface Waiter {
  readonly object: WireObject
  readonly range: Range
  readonly endMs: number
  readonly settle: (found: LocalObject | undefined) => void
}

/**
 * Waiters for one staging share one look at its manifest. It is opened for the look only: the stager could not
 * publish while somebody holds it open.
 */
export function watchArrivingObjects(): ArrivingObjects {
  const stagings = new Map<string, { readonly copy: Copy; readonly waiters: Set<Waiter> }>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    for (const [directory, { copy, waiters }] of stagings) {
      lookAt(copy, waiters)
      if (waiters.size === 0) stagings.delete(directory)
    }
    if (stagings.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    wait: (copy, { object, range }, limitMs) =>
      new Promise((resolve) => {
        const staging = stagings.get(copy.directory) ?? { copy, waiters: new Set<Waiter>() }
        stagings.set(copy.directory, staging)
        const waiter: Waiter = {
          object,
          range,
          endMs: performance.now() + limitMs,
          settle: (found) => {
            staging.waiters.delete(waiter)
            resolve(found)
          },
        }
        staging.waiters.add(waiter)
        timer ??= setInterval(look, LOOK_INTERVAL_MS)
      }),
    close() {
      clearInterval(timer)
      for (const { waiters } of stagings.values()) for (const waiter of [...waiters]) waiter.settle(undefined)
    },
  }
}

function lookAt(copy: Copy, waiters: Set<Waiter>): void {
  let manifest: Manifest | undefined
  try {
    manifest = Manifest.findPublished(copy.directory)
    // Published or given up: whoever waits asks again and is served from there, or elsewhere.
    if (manifest === undefined) {
      for (const waiter of [...waiters]) waiter.settle(undefined)
      return
    }
    const nowMs = performance.now()
    for (const waiter of [...waiters]) {
      const entry = manifest.find(waiter.object.key)
      if (entry && isSameObject(entry, waiter.object) && isThere(manifest, entry, waiter.range)) {
        const part = manifest.findPart(entry, waiter.range)
        waiter.settle({ copy, entry, part, path: pathOf(copy, entry) })
      } else if (nowMs > waiter.endMs) waiter.settle(undefined)
    }
  } catch {
    // It is being published or removed this moment: looked at again, and not for longer than the limits.
    const nowMs = performance.now()
    for (const waiter of [...waiters]) if (nowMs > waiter.endMs) waiter.settle(undefined)
  } finally {
    manifest?.close()
  }
}

function isThere(manifest: Manifest, entry: ManifestEntry, range: Range): boolean {
  if (entry.state === 'present') return true
  if (entry.partBytes === null || range.length === 0) return false
  const first = Math.floor(range.offset / entry.partBytes)
  const last = Math.floor((range.offset + range.length - 1) / entry.partBytes)
  return manifest.hasParts(entry.id, first, last)
}
