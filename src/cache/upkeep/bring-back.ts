import { formatByteSize } from '../../model/byte-size.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { RecordEvent } from '../../model/record-event.js'
import { planAdmission } from '../../policy/plan-admission.js'
import type { Cache } from '../cache.js'
import { copyDirectory, filesDirectory } from '../cache-layout.js'
import { finishEvictions } from '../eviction/finish-evictions.js'
import { guardCopy } from '../guard-copy.js'
import { readHeldManifest } from '../held-manifest.js'
import { type KeptCopy, keepCopy, listKept, measureRoom, takeOutKept } from '../kept-copies.js'
import { createCopyId, describeAdopted } from './adopted-copy.js'
import { explainEmptied, explainPresent, type Obstacle } from './find-losses.js'

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
  const kept = listKept(cache.root).find(({ copyId }) => copyId === event.copyId)
  const { version } = event.detail as unknown as EvictedFacts
  const copyId = createCopyId()
  const directory = copyDirectory(cache.root, { dataset, version, copyId })
  if (kept === undefined || !takeOutKept(cache.root, kept, directory)) return explainEmptied(dataset)
  const copy = await describeReturned(cache, event, { copyId, directory }).catch((error: unknown) => {
    keepCopy(cache.root, directory, kept)
    throw error
  })
  // If it fails, the record may have the copy all the same, so that the files stay: a cleanup adopts them if not.
  const outcome = copy ? await admitReturned(cache, { copy, reason, undoes }) : 'damaged'
  if (outcome === 'admitted') return undefined
  const present = await cache.record.listCopies({ dataset, node }, cache.nowMs())
  const adopted = present.find((other) => other.directory === directory)
  if (adopted) {
    // A cleanup found the files in between: then they are back all the same.
    const said = { kind: 'undone', node, dataset, copyId: adopted.copyId, task: null, reason } as const
    await cache.record.addEvent({ ...said, atMs: cache.nowMs(), detail: { version, undoes } })
    return undefined
  }
  keepCopy(cache.root, directory, kept)
  return explain(outcome, { dataset, kept })
}

/**
 * The copy as it was, at its new place, open to those who may read it by now; undefined: its manifest is not the one
 * that was evicted.
 */
async function describeReturned(
  cache: Cache,
  { dataset, node, detail, copyId: evictedId }: RecordEvent,
  { copyId, directory }: Pick<Copy, 'copyId' | 'directory'>,
): Promise<Copy | undefined> {
  const { version, origin, source, lastTask, parties } = detail as unknown as EvictedFacts
  const manifest = readHeldManifest(cache.root, directory)
  if (!manifest?.isComplete || manifest.dataset.name !== dataset || manifest.listing.version !== version)
    return undefined
  const { listing, stripe } = manifest
  const place = { copyId, node, directory, path: filesDirectory(directory), isElsewhere: false }
  const found = { ...place, dataset: source, listing, stripe, nowMs: cache.nowMs() }
  const copy = { ...(await describeAdopted(found)), origin, lastTask, parties }
  await guardCopy(cache, copy)
  const kinds = ['damaged', 'repaired'] as const
  const [last] = evictedId ? await cache.record.listEvents({ copyId: evictedId, kinds, limit: 1 }) : []
  // Before the copy is ready: no other node may read it.
  if (last?.kind === 'damaged') await cache.record.addEvent({ ...last, copyId, atMs: cache.nowMs() })
  return copy
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
      (copies, unread) =>
        planAdmission({ policy, disk, copies, unread, request, requestCopyId: '', parties }),
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
  { dataset, kept }: { readonly dataset: string; readonly kept: KeptCopy },
): Obstacle {
  const again = `dsc prepare ${dataset}`
  switch (outcome) {
    case 'present':
      return explainPresent(dataset)
    case 'no-room':
      return {
        reason: `${dataset} needs ${formatByteSize(kept.diskBytes)}, which the limits no longer leave`,
        hint: again,
      }
    case 'damaged':
      return { reason: `the files of ${dataset} in the trash are not those that were evicted`, hint: again }
  }
}
