import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync } from 'node:fs'
import { basename, join } from 'node:path'
import { withClosers } from '../../failure/closers.js'
import { DscError, describeFailure, isDscError, type KnownFailure } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { nameHeldFolder } from '../../platform/held-folder.js'
import { holdByThisProcess } from '../../platform/processes.js'
import { findDamagedCopies } from '../../sources/damaged-copies.js'
import type { Cache } from '../cache.js'
import { repairPrefix } from '../cache-layout.js'
import { makeHeld } from '../held-cache.js'
import { holdCopy, holdCopyDirectory } from '../held-copy.js'
import { missingCopy } from '../names/missing-copy.js'
import { nameInHint } from '../names/name-in-hint.js'
import { markUntouched } from '../untouched-copy.js'
import { type Repair, repairCopy } from './repair-copy.js'
import { SharedRepairs } from './shared-repairs.js'
import { type Damage, type Verification, verifyCopy } from './verify-copy.js'

/**
 * Result of verifying one copy. `repaired` is null if nothing needed repair or none was asked for; `failure` says why
 * it could not be verified, or not be repaired completely.
 */
export interface VerifiedDataset extends Verification {
  readonly dataset: string
  readonly version: string | null
  readonly path: string
  readonly repaired: Repair | null
  readonly failure: KnownFailure | null
}

/** Results by copy, and the number of damaged files that other copies, which were not read, share. */
export interface Verified {
  readonly copies: readonly VerifiedDataset[]
  readonly sharedElsewhere: number
}

/**
 * Reads every byte of the ready copies of the named datasets (all, if none is named) and, if asked, fetches damaged
 * files again. A lease keeps each copy from being evicted during the read. A problem with one copy does not stop the
 * others from being verified. Rejects with COPY_NOT_FOUND, and when it is stopped.
 */
export async function verifyDataset(
  cache: Cache,
  names: readonly string[],
  options: {
    readonly isRepair: boolean
    /** Leaves out copies for which it returns false. Default: verify all. */
    readonly accept?: (copy: Copy) => boolean
    readonly signal: AbortSignal
    readonly onProgress: (dataset: string, checkedFiles: number, checkedBytes: number) => void
  },
): Promise<Verified> {
  const ready = await cache.record.listCopies({ node: cache.node, states: ['ready'] }, cache.nowMs())
  for (const name of names) {
    if (ready.some(({ dataset }) => dataset === name)) continue
    const asked = { dataset: name, node: cache.node }
    const hints = { command: 'dsc verify', otherwise: `dsc prepare ${name}` }
    throw await missingCopy(cache.record, asked, hints)
  }
  const verified: VerifiedDataset[] = []
  const repairing = { ...options, shared: new SharedRepairs() }
  for (const copy of ready) {
    if (names.length > 0 && !names.includes(copy.dataset)) continue
    if (options.accept?.(copy) === false) continue
    if (cache.record.isReadOnly && !options.isRepair) {
      // A read-only record takes no lease to keep the copy from being evicted.
      verified.push(await verifyOne(cache, copy, repairing))
      continue
    }
    const leaseId = await leaseForReading(cache, copy)
    if (leaseId === undefined) continue
    try {
      verified.push(await verifyOne(cache, copy, repairing))
    } finally {
      await cache.record.releaseUses({ leaseId }, cache.nowMs())
    }
  }
  return { copies: verified, sharedElsewhere: repairing.shared.sharedElsewhere }
}

type VerifyOptions = Parameters<typeof verifyDataset>[2] & { readonly shared: SharedRepairs }

/** Failures that concern more than one copy. */
const ENDING = ['INTERRUPTED', 'RECORD_UNAVAILABLE'] as const

async function verifyOne(cache: Cache, copy: Copy, options: VerifyOptions): Promise<VerifiedDataset> {
  const { dataset, version, path } = copy
  const nothing = { dataset, version, path, checkedFiles: 0, checkedBytes: 0, damages: [], repaired: null }
  try {
    return await verifyAndRepair(cache, copy, options)
  } catch (error) {
    if (!isDscError(error) || isDscError(error, ...ENDING)) throw error
    return { ...nothing, failure: describeFailure(nameInHint(error, dataset)) }
  }
}

async function verifyAndRepair(cache: Cache, copy: Copy, options: VerifyOptions): Promise<VerifiedDataset> {
  const { dataset, version, path } = copy
  const { damages: differences, ...checked } = await compare(cache, copy, options)
  // An adopted folder belongs to its owner, who may keep other files in it.
  const damages = differences.filter(({ problem }) => copy.origin !== 'local' || problem !== 'unexpected')
  for (const { path: key, problem } of damages)
    if (problem === 'content') options.shared.see(lstatSync(join(path, key), { throwIfNoEntry: false }))
  const found = { dataset, version, path, ...checked, damages, repaired: null, failure: null }
  if (cache.record.isReadOnly) return found
  const event = { atMs: cache.nowMs(), node: cache.node, dataset, copyId: copy.copyId, task: 'dsc verify' }
  if (damages.length === 0) {
    if ((await findDamagedCopies(cache.record, dataset)).has(copy.copyId))
      await cache.record.addEvent({
        ...event,
        kind: 'repaired',
        reason: 'every file is as the manifest says',
        detail: {},
      })
    return found
  }
  await cache.record.addEvent({
    ...event,
    kind: 'damaged',
    reason: `${formatCount(damages.length, 'file differs', 'files differ')} from the manifest, first ${damages[0]!.path} (${damages[0]!.problem})`,
    detail: { damages: damages.slice(0, 100) },
  })
  if (!options.isRepair) return found
  const repaired = await repairOne(cache, copy, {
    damages,
    shared: options.shared,
    signal: options.signal,
  }).catch((error: unknown) => {
    if (!isDscError(error) || isDscError(error, ...ENDING)) throw error
    return describeFailure(nameInHint(error, dataset))
  })
  if ('code' in repaired) return { ...found, failure: repaired }
  await cache.record.addEvent({
    ...event,
    kind: 'repaired',
    reason: `fetched ${repaired.fetchedBytes} bytes for ${formatCount(repaired.repairedFiles, 'file')}, removed ${repaired.removedFiles}`,
    detail: { ...repaired, failures: repaired.failures.slice(0, 100) },
  })
  return { ...found, repaired, failure: summarize(repaired.failures) }
}

async function compare(cache: Cache, copy: Copy, options: VerifyOptions) {
  using directory = holdCopyDirectory(cache, copy)
  try {
    if (copy.origin !== 'local') directory.findFolder('files')?.close() // refuses to read through a link
    return await verifyCopy({
      copyDirectory: directory.path,
      signal: options.signal,
      onProgress: ({ checkedFiles, checkedBytes }) =>
        options.onProgress(copy.dataset, checkedFiles, checkedBytes),
    })
  } catch (error) {
    throw nameHeldFolder(error, directory)
  }
}

/** The first failure, and the number of others. */
function summarize(failures: Repair['failures']): KnownFailure | null {
  const [first, ...more] = failures
  if (first === undefined) return null
  const { code, message, hint } = first
  return {
    code,
    message: more.length === 0 ? message : `${message} (and ${formatCount(more.length, 'more file')})`,
    hint,
  }
}

/** Fetches the damaged parts of a ready copy again; the caller leases it. */
export async function repairOne(
  cache: Cache,
  copy: Copy,
  options: {
    readonly damages: readonly Damage[]
    readonly shared?: SharedRepairs
    readonly signal: AbortSignal
  },
): Promise<Repair> {
  if (copy.source === null) {
    throw new DscError(
      'COPY_DAMAGED',
      `${copy.dataset} is damaged, and no source is known to repair it from`,
      { hint: `dsc adopt ${copy.path} --name ${copy.dataset} --source s3://bucket/prefix/` },
    )
  }
  const dataset = copy.source
  return withClosers(async (closers) => {
    const held = holdForRepair(cache, copy)
    closers.add(() => held.close())
    const source = await cache.openSource(dataset)
    closers.add(() => source.close())
    const { stallTimeoutMs } = cache.transfer
    const repair = await repairCopy({ source, ...held, ...options, stallTimeoutMs })
    const failures = repair.failures.map((failure) => ({
      ...failure,
      hint: failure.hint?.replaceAll('<dataset>', copy.dataset),
    }))
    if (copy.origin !== 'local') markUntouched(copy.directory)
    return { ...repair, failures }
  })
}

/** The bench is on the file system of the files: an adopted folder may be on another than the cache. */
function holdForRepair(cache: Cache, copy: Copy) {
  const { directory, files } = holdCopy(cache, copy)
  const beside = copy.origin === 'local' ? files : makeHeld(cache.root, ['staging'])
  const name = `${basename(repairPrefix(cache.root, copy))}${randomBytes(4).toString('hex')}`
  const bench = beside.makeFolder(name)
  chmodSync(bench.path, 0o700) // its files may be for some readers alone
  return {
    directory,
    files,
    bench,
    async close() {
      bench.close()
      await beside.remove(name)
      for (const folder of new Set([beside, files, directory])) folder.close()
    },
  }
}

let readings = 0

/**
 * A `transfer` lease counts as a reference but leaves last task and last use alone. Each reading has one of its own: a
 * service reads a copy for several users at once.
 */
async function leaseForReading(cache: Cache, copy: Copy): Promise<string | undefined> {
  const holder = holdByThisProcess()
  const lease = { task: `dsc verify:${process.pid}.${++readings}`, holder, expiresAtMs: null }
  return cache.record.leaseCopy({ copyId: copy.copyId, purpose: 'transfer', lease }, cache.nowMs())
}
