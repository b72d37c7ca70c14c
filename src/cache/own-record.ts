import { chmodSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordLocation } from '../config/config.js'
import { DscError } from '../failure/dsc-error.js'
import { isRefused } from '../platform/disk-failure.js'
import { nameRecord, readCacheIdentity } from './cache-identity.js'
import { writeIdentity } from './open-cache-root.js'

/** The record that governs the cache, as `record:` names it; undefined: none yet, or it is gone. */
export function findGoverningRecord(root: string): string | undefined {
  const named = readCacheIdentity(root)?.record
  if (typeof named !== 'string') return undefined
  const path = pathOfNamed(named, root)
  if (path === undefined) return named
  return lstatSync(path, { throwIfNoEntry: false }) ? path : undefined
}

/** The record that governs the cache instead of `location`; undefined: none, or `location` may follow it. */
export function findOtherRecord(root: string, location: RecordLocation): string | undefined {
  const named = readCacheIdentity(root)?.record
  const isOther = typeof named === 'string' && named !== nameRecord(location, root)
  return isOther && !mayFollow(named, root, location) ? findGoverningRecord(root) : undefined
}

/**
 * Rejects if another record governs the cache: each would evict what jobs hold by the other. A record that knows the
 * cache takes it over from one that is gone (moved, or restored), and among names of servers.
 */
export async function requireOwnRecord(options: {
  readonly root: string
  readonly location: RecordLocation
  /** The command or setting after which the other record counts. */
  readonly describeRemedy: (record: string) => string
  /** Whether the record knows the cache by its id. */
  readonly isKnown: () => Promise<boolean>
}): Promise<void> {
  const { root, location, isKnown, describeRemedy } = options
  const identity = readCacheIdentity(root)
  const named = identity?.record
  const own = nameRecord(location, root)
  if (typeof identity?.id !== 'string' || named === own) return
  if (typeof named === 'string' && !(mayFollow(named, root, location) && (await isKnown()))) {
    const found = pathOfNamed(named, root) ?? named
    throw new DscError('CACHE_ROOT_INVALID', `${root} is governed by the record ${found}, not by ${own}`, {
      hint: `${describeRemedy(found)}; or, if that record is no longer used: dsc record claim-node`,
    })
  }
  await governBy(root, { id: identity.id, record: own })
}

/** Takes the record from everybody but its owner: it names the copies, leases and paths of datasets with readers. */
export function closeRecord(location: RecordLocation): void {
  if (location.kind !== 'sqlite') return
  for (const path of ['', '-wal', '-shm'].map((end) => `${location.path}${end}`)) {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isFile() && (found.mode & 0o077) !== 0 && found.uid === process.geteuid?.())
      chmodSync(path, 0o600)
  }
}

/** Makes the record govern the cache from now on. */
export async function governBy(
  root: string,
  identity: { readonly id: string; readonly record: string },
): Promise<void> {
  try {
    await writeIdentity(root, identity)
  } catch (error) {
    if (!isRefused(error)) throw error // its owner writes it the next time
  }
}

/** Lets the cache follow its record to a new place. Does nothing if another record governs it, or none yet. */
export async function followRecord(
  root: string,
  moved: { readonly from: RecordLocation; readonly to: RecordLocation },
): Promise<void> {
  const identity = readCacheIdentity(root)
  if (typeof identity?.id !== 'string' || identity.record !== nameRecord(moved.from, root)) return
  await governBy(root, { id: identity.id, record: nameRecord(moved.to, root) })
}

/** Whether the named record cannot be another one that is in use. */
function mayFollow(named: string, root: string, location: RecordLocation): boolean {
  if (named.startsWith('postgres')) return location.kind === 'postgres'
  const path = pathOfNamed(named, root)
  return path !== undefined && lstatSync(path, { throwIfNoEntry: false }) === undefined
}

/** The file of a record that `nameRecord` named; undefined: it is on a server. */
function pathOfNamed(named: string, root: string): string | undefined {
  if (named.startsWith('sqlite://')) return named.slice('sqlite://'.length)
  return named.includes('://') ? undefined : join(root, named)
}
