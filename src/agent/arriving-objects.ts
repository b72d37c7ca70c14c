import type Database from 'better-sqlite3'
import type { Copy } from '../model/copy.js'
import { findPublishedManifest } from '../stage/manifest-db.js'
import type { ObjectRow } from '../stage/object-row.js'
import type { WireObject } from '../stage/peer-wire.js'
import { isSameObject, type LocalObject, pathOf } from './local-copies.js'

/** How often a staging is looked at while somebody waits for a part of it, ms. */
const LOOK_INTERVAL_MS = 50

/** A range of an object, bytes. */
export interface Range {
  readonly offset: number
  readonly length: number
}

/** Hands out parts of copies that are still being staged, as soon as they are written and proven. */
export interface ArrivingObjects {
  /** Resolves with the object once the range is there; undefined after `limitMs` or when the staging is over. */
  wait(copy: Copy, object: WireObject, range: Range, limitMs: number): Promise<LocalObject | undefined>
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
    wait: (copy, object, range, limitMs) =>
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
  let db: Database.Database | undefined
  try {
    db = findPublishedManifest(copy.directory)
    // Published or given up: whoever waits asks again and is served from there, or elsewhere.
    if (db === undefined) {
      for (const waiter of [...waiters]) waiter.settle(undefined)
      return
    }
    const find = db.prepare<[string], ObjectRow>('SELECT * FROM object WHERE key = ?')
    const count = db.prepare<[number, number, number], { n: number }>(
      'SELECT count(*) AS n FROM part WHERE object_id = ? AND number BETWEEN ? AND ?',
    )
    const nowMs = performance.now()
    for (const waiter of [...waiters]) {
      const row = find.get(waiter.object.key)
      if (row && isSameObject(row, waiter.object) && isThere(row, waiter.range, count)) {
        waiter.settle({ copy, row, path: pathOf(copy, row) })
      } else if (nowMs > waiter.endMs) waiter.settle(undefined)
    }
  } catch {
    // It is being published or removed this moment: looked at again, and not for longer than the limits.
    const nowMs = performance.now()
    for (const waiter of [...waiters]) if (nowMs > waiter.endMs) waiter.settle(undefined)
  } finally {
    db?.close()
  }
}

function isThere(
  row: ObjectRow,
  range: Range,
  count: Database.Statement<[number, number, number], { n: number }>,
): boolean {
  if (row.state === 1) return true
  if (row.part_bytes === null || range.length === 0) return false
  const first = Math.floor(range.offset / row.part_bytes)
  const last = Math.floor((range.offset + range.length - 1) / row.part_bytes)
  return count.get(row.id, first, last)!.n === last - first + 1
}
