import { formatByteSize } from '../../model/byte-size.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { RecordEvent } from '../../model/record-event.js'
import { planAdmission } from '../../policy/plan-admission.js'
import type { Cache } from '../cache.js'
import { copyDirectory, filesDirectory } from '../cache-layout.js'
import { finishEvictions } from '../eviction/finish-evictions.js'
import { guardCopy } from '../guard-copy.js'
import { type KeptCopy, keepCopy, listKept, measureRoom, takeOutKept } from '../kept-copies.js'
import { readHeldManifest } from './adopt-published.js'
import { createCopyId, describeAdopted } from './adopted-copy.js'
import type { Obstacle } from './undo-deed.js'

/** Attempts, each after evictions that another process left unfinished. */
const MAX_ATTEMPTS = 100

/** The history's facts about an evicted copy, of `markEvicting`. */
type EvictedFacts = Pick<Copy, 'origin' | 'lastTask' | 'parties'> & {
  readonly version: string
  readonly source: Dataset
}

/**
 * Makes an evicted copy ready again, from the trash and under a new id: a process that finishes its eviction late never
 * finds it. The files get their name before the record says ready; after a kill between the two, a cleanup adopts them.
 */
export async function bringBack(
  cache: Cache,
  event: RecordEvent,
  { deedId, reason }: { readonly deedId: number; readonly reason: string },
): Promise<Obstacle | undefined> {
  const { dataset, node, sequence: undoes } = event
  if (node !== cache.node)
    return {
      reason: `${dataset} was evicted on ${node}: its files are in the trash there`,
      hint: `dsc undo ${deedId} on ${node}`,
    }
  const again = `dsc prepare ${dataset}`
  const gone = { reason: `the files of ${dataset} are gone: something needed their room`, hint: again }
  const kept = listKept(cache.root).find(({ copyId }) => copyId === event.copyId)
  if (kept === undefined) return gone
  const { version } = event.detail as unknown as EvictedFacts
  const copyId = createCopyId()
  const directory = copyDirectory(cache.root, { dataset, version, copyId })
  if (!takeOutKept(cache.root, kept, directory)) return gone
  const copy = await describeReturned(cache, event, { copyId, directory })
  if (copy) await guardCopy(cache, copy) // its readers may be others by now
  const outcome = copy ? await admitReturned(cache, { copy, reason, undoes }) : 'damaged'
  if (outcome === 'admitted') return undefined
  // A cleanup may have found the files in between and adopted them: then they are back all the same.
  const present = await cache.record.listCopies({ dataset, node }, cache.nowMs())
  if (present.some((other) => other.directory === directory)) return undefined
  keepCopy(cache.root, directory, kept)
  return explain(outcome, { dataset, kept, again })
}

/** The copy as it was, at its new place; undefined: its manifest is not the one that was evicted. */
async function describeReturned(
  cache: Cache,
  { dataset, node, detail }: RecordEvent,
  { copyId, directory }: Pick<Copy, 'copyId' | 'directory'>,
): Promise<Copy | undefined> {
  const { version, origin, source, lastTask, parties } = detail as unknown as EvictedFacts
  const manifest = readHeldManifest(cache.root, directory)
  if (!manifest?.isComplete || manifest.dataset.name !== dataset || manifest.listing.version !== version)
    return undefined
  const { listing, stripe } = manifest
  const place = { copyId, node, directory, path: filesDirectory(directory), isElsewhere: false }
  const found = { ...place, dataset: source, listing, stripe, nowMs: cache.nowMs() }
  return { ...(await describeAdopted(found)), origin, lastTask, parties }
}

type Outcome = 'admitted' | 'present' | 'no-room' | 'damaged'

async function admitReturned(
  cache: Cache,
  returned: { readonly copy: Copy; readonly reason: string; readonly undoes: number },
): Promise<Outcome> {
  const { chargedBytes: bytes, chargedInodes: inodes, parties } = returned.copy
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { policy, record } = cache
    const request = { datasets: 1, bytes, inodes }
    const measured = await measureRoom(cache)
    // Its bytes are on the disk, and no longer in the trash: they need no second place.
    const disk = {
      ...measured,
      freeBytes: measured.freeBytes + bytes,
      inodesFree: measured.inodesFree + inodes,
    }
    const answer = await record.returnCopy(
      returned,
      (copies) => planAdmission({ policy, disk, copies, request, requestCopyId: '', parties }),
      cache.nowMs(),
    )
    if (answer.outcome === 'present') return 'present'
    if (answer.outcome === 'admit' && answer.plan.victims.length === 0) return 'admitted'
    if (answer.outcome !== 'wait') return 'no-room'
    await finishEvictions(cache, answer.evicting)
  }
  return 'no-room'
}

function explain(
  outcome: Exclude<Outcome, 'admitted'>,
  { dataset, kept, again }: { readonly dataset: string; readonly kept: KeptCopy; readonly again: string },
): Obstacle {
  switch (outcome) {
    case 'present':
      return { reason: `${dataset} is here again, or being staged`, hint: `dsc why ${dataset}` }
    case 'no-room':
      return {
        reason: `${dataset} needs ${formatByteSize(kept.diskBytes)}, which the limits no longer leave`,
        hint: again,
      }
    case 'damaged':
      return { reason: `the files of ${dataset} in the trash are not those that were evicted`, hint: again }
  }
}
