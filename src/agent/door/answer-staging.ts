import { z } from 'zod'
import { createOwnApi, type Leased } from '../../cache/api/node-api.js'
import type { Cache } from '../../cache/cache.js'
import type { EvictionSelection } from '../../cache/eviction/evict-copies.js'
import { findReadersOf } from '../../cache/find-readers.js'
import { addUse } from '../../cache/leases/add-use.js'
import { takeReadyCopy } from '../../cache/leases/take-ready-copy.js'
import { planReady } from '../../cache/prepare/plan-prepare.js'
import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import type { Undone } from '../../cache/upkeep/describe-deed.js'
import { findPastDeed } from '../../cache/upkeep/undo-deed.js'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { type Dataset, findOwner, isUndeclared } from '../../model/dataset.js'
import type { Lease, LeaseRequest } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { isAdmin, judgeDeed } from '../../policy/rights.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { expected, fields, flag, text, texts, whole } from '../calls/fields.js'
import { parseLeaseRequest } from '../calls/parse-lease-request.js'
import { limitBandwidth } from '../calls/prepare-route.js'
import {
  type DoorCall,
  findShown,
  keepShown,
  look,
  operation,
  requireReader,
  requireRight,
} from './door-call.js'
import { locateHolder } from './find-holder.js'
import { handedAccess } from './handed-access.js'
import { nameAsker } from './identify-asker.js'
import { openOwnSource } from './own-sources.js'

/** A definition that an asker sends: which dataset they mean. How it is reached counts from admins alone. */
export const datasetFields = fields({
  name: text,
  source: text,
  include: texts,
  exclude: texts,
  endpoint: text.optional(),
  profile: text.optional(),
  anonymous: flag.optional(),
})
const preparation = {
  dataset: datasetFields,
  own: handedAccess.optional(),
  isRefresh: flag.default(false),
  isPrefetch: flag.default(false),
  bandwidthBytesPerSecond: whole.optional(),
}
const selection = z.discriminatedUnion(
  'kind',
  [
    fields({ kind: z.literal('datasets'), names: texts }),
    fields({ kind: z.literal('copy'), copyId: text }),
    fields({ kind: z.literal('free'), bytes: whole }),
  ],
  expected('a selection of the kind datasets, copy or free'),
)

/** The operations that change the cache: staging and eviction. */
export const STAGING_OPERATIONS = {
  prepare: operation(
    fields({
      ...preparation,
      lease: z.unknown().optional(),
      mayWait: flag.default(false),
      isReadWhileComing: flag.default(false),
      call: text.optional(),
    }),
    { takes: 'stagings', isLease: true },
    async (
      call,
      { dataset: asked, own, bandwidthBytesPerSecond, isReadWhileComing, call: id, ...request },
    ) => {
      const known = await findReadable(call, asked.name)
      const isReadable = known?.dataset.source === asked.source && !request.isRefresh
      const ready = isReadable ? await takeReady(call, known.dataset, request.lease) : undefined
      if (ready) return ready
      const { dataset, isDeclared, cache } = judgeAsked(call, asked, { known, own })
      const room =
        isDeclared || isAdmin(call.asker, call.service.rules) ? undefined : takeUndeclared(call, dataset)
      const { anonymous: _, ...named } = dataset
      const placed = {
        ...request,
        dataset,
        asked: room && named, // that the service sends no credentials for a user is not the dataset's
        lease: placeLease(call, request.lease),
        admit: room?.admit,
      }
      using read = call.service.reads.await(id, call.asker.uid)
      const firstRead = isReadWhileComing ? read.first : undefined
      const ways = { signal: call.signal, onProgress: hideVictims(call), firstRead }
      using _room = atEndNow(() => room?.free())
      return await createOwnApi(paced(cache, bandwidthBytesPerSecond)).prepare(placed, ways)
    },
  ),
  takeReady: operation(
    fields({ name: text, lease: z.unknown().optional() }),
    { isLease: true },
    async (call, { name, lease }) => {
      const known = await findReadable(call, name)
      return known && takeReady(call, known.dataset, lease)
    },
  ),
  planPrepare: operation(
    fields(preparation),
    { takes: 'stagings', isLook: true },
    async (call, { dataset: asked, own, bandwidthBytesPerSecond, ...request }) => {
      const known = await findReadable(call, asked.name)
      const isReadable = known?.dataset.source === asked.source && !request.isRefresh
      const ready = isReadable ? await planReady(call.cache, asked.name) : undefined
      if (ready) return ready
      const { dataset, cache } = judgeAsked(call, asked, { known, own })
      const parties = choosePartiesOf(call, undefined)
      const api = createOwnApi(paced(cache, bandwidthBytesPerSecond))
      const plan = await api.planPrepare({ ...request, dataset, parties }, call)
      return { ...plan, evictions: await keepShown(call, plan.evictions) }
    },
  ),
  planEviction: look(
    fields({ selection, isOwn: flag.default(false) }),
    async (call, { selection, isOwn }) => {
      if (isOwn) requireRight(call, { kind: 'evict' })
      await requireReaderOf(call, selection)
      const plan = await createOwnApi(call.cache).planEviction(selection, { isOwn })
      const names = plan.victims.map(({ copy }) => copy.dataset)
      const isShown = await findShown(call, names)
      return { ...plan, victims: plan.victims.filter(({ copy }) => isShown(copy.dataset)) }
    },
  ),
  evict: operation(
    fields({ selection, isKept: flag.default(false) }),
    { right: { kind: 'evict' } },
    (call, { selection, isKept }) =>
      createOwnApi(call.cache).evict(selection, { by: isKept ? nameAsker(call.asker) : undefined }),
  ),
  listDeeds: look(fields({}), async (call) => {
    const deeds = await createOwnApi(call.cache).listDeeds()
    const isShown = await findShown(
      call,
      new Set(deeds.flatMap(({ events }) => events.map(({ dataset }) => dataset))),
    )
    return deeds.flatMap((deed) => {
      const events = deed.events.filter(({ dataset }) => isShown(dataset))
      return events.length > 0 ? [{ ...deed, events }] : []
    })
  }),
  undo: operation(fields({ id: whole.optional() }), {}, undo),
}

/** Takes back the deed that is named, or the asker's last, whose name is the one that the kernel gives. */
async function undo(call: DoorCall, { id }: { readonly id?: number | undefined }): Promise<Undone> {
  const request = { id, by: nameAsker(call.asker) }
  const deed = await findPastDeed(call.cache, request)
  for (const { dataset } of deed.events) await requireReader(call, dataset)
  const isOfAsker = ({ detail }: RecordEvent) =>
    (detail.lease as Lease | undefined)?.holder.userId === call.asker.uid
  const isOwn = deed.by === request.by && deed.events.every(isOfAsker)
  requireRight(call, { kind: 'undo', of: deed.kind, isOwn })
  return createOwnApi(call.cache).undo({ ...request, id: deed.id })
}

/** Keeps what users stage of their own choice within its limit. Call `free` when it is staged, or has failed. */
function takeUndeclared({ asker, service }: DoorCall, dataset: Dataset) {
  const { cache, undeclared } = service
  let free = () => {}
  return {
    admit: async (neededBytes: number) => {
      free()
      free = await undeclared.take(cache, { asker, dataset, neededBytes })
    },
    free: () => free(),
  }
}

/** Reports the staging, without victims that the asker may not read. */
export function hideVictims({
  asker,
  service,
  onProgress,
}: Pick<DoorCall, 'asker' | 'service' | 'onProgress'>): (progress: PrepareProgress) => void {
  const isShown = (copy: Copy) =>
    judgeDeed(asker, { kind: 'read', readers: findReadersOf(service.cache, copy) }, service.rules).may
  return (progress) => {
    if (progress.step !== 'evicting') return onProgress(progress)
    const shown = { ...progress, victims: progress.victims.filter(({ copy }) => isShown(copy)) }
    onProgress(shown)
  }
}

/** Rejects with NOT_PERMITTED if the selection names a copy that the asker may not read. */
async function requireReaderOf(call: DoorCall, selection: EvictionSelection): Promise<void> {
  const { record, nowMs } = call.cache
  if (selection.kind === 'datasets') for (const name of selection.names) await requireReader(call, name)
  if (selection.kind !== 'copy') return
  for (const { dataset } of await record.listCopies({ copyId: selection.copyId }, nowMs()))
    await requireReader(call, dataset)
}

/** The lease that is asked for, with the holder and the parties that the service sees. */
export function placeLease(call: DoorCall, raw: unknown): LeaseRequest {
  const nowMs = call.cache.nowMs()
  const asked = parseLeaseRequest(raw, nowMs)
  const placed = locateHolder(asked, { peer: call.peer, userId: call.asker.uid, nowMs })
  return { ...placed, parties: choosePartiesOf(call, asked.parties) }
}

/** The cache for an asker who may stage more slowly than the node, never faster. */
function paced(cache: Cache, wanted: number | undefined): Cache {
  if (wanted === undefined || wanted < 1) return cache
  const own = cache.nodeBudget?.bandwidthBytesPerSecond ?? Number.POSITIVE_INFINITY
  return limitBandwidth(cache, Math.min(own, wanted))
}

/** The parties for shares: those that the kernel shows. A prolog of root's stages for the user of the job. */
function choosePartiesOf(call: DoorCall, said: readonly string[] | undefined): readonly string[] {
  return call.asker.uid === 0 && said !== undefined ? said : call.asker.parties
}

/** A definition that the service knows under a name. Only what is declared may be read for anybody, as it says. */
interface Known {
  readonly dataset: Dataset
  /** False: it comes from a copy, or from a URL that somebody asked for, on this node or another one of the record. */
  readonly isDeclared: boolean
}

/**
 * The dataset to stage, as the service knows it: a client's definition says which one, and an admin's alone how it is
 * reached. An undeclared source is read without credentials, for the service's are not the asker's.
 */
export function judgeAsked(
  call: DoorCall,
  asked: Dataset,
  { known, own }: { readonly known: Known | undefined; readonly own: HandedAccess | undefined },
): Known & { readonly cache: Cache } {
  const { cache } = call.service
  const { name, source, include, exclude } = asked
  const { readers } = known?.dataset ?? {}
  const plain = { name, source, include, exclude, ...(readers && { readers }) }
  const isSame = known?.dataset.source === source
  const isDeclared = isSame && known.isDeclared
  parseSourceUrl(asked.source)
  if (own && !isDeclared && (known === undefined || isSame)) {
    const opened = openOwnSource(call, asked, own)
    call.service.onPrivate()
    return { ...opened, isDeclared }
  }
  requireRight(call, { kind: 'prepare', source: asked.source, isDeclared })
  if (isDeclared) return { ...known, cache }
  if (findOwner(name) !== undefined)
    throw new DscError('NOT_PERMITTED', `${source} is read with its user's own credentials alone`, {
      hint: 'log in as for the AWS CLI or the hub, then run dsc prepare with the URL again',
    })
  const mayDoAll = isAdmin(call.asker, call.service.rules)
  // A name that stands for another source is not taken from it, however alike two digests can be made.
  const isNamed = isSame
    ? mayDoAll || isUndeclared(plain)
    : known === undefined && isUndeclared(mayDoAll ? asked : plain)
  if (!isNamed)
    throw new DscError('DATASET_UNKNOWN', `no dataset of this service is called ${asked.name}`, {
      hint: 'dsc dataset ls',
    })
  const dataset = mayDoAll ? { ...asked, ...(readers && { readers }) } : { ...plain, anonymous: true }
  return { dataset, isDeclared, cache }
}

/** Finds the definition with the readers of the dataset. Rejects with NOT_PERMITTED unless the asker may read it. */
export async function findReadable(call: DoorCall, name: string): Promise<Known | undefined> {
  const readers = await call.service.guarded.readersOf(name)
  requireRight(call, { kind: 'read', readers })
  const known = await findKnown(call, name)
  return known && { ...known, dataset: { ...known.dataset, readers } }
}

async function findKnown({ cache }: DoorCall, name: string): Promise<Known | undefined> {
  const declared = cache.declared?.find((dataset) => dataset.name === name)
  if (declared) return { dataset: declared, isDeclared: true }
  const { record, nowMs } = cache
  const added = await record.findDataset(name)
  if (added) return { dataset: added, isDeclared: !isUndeclared(added) }
  const copies = await record.listCopies({ dataset: name }, nowMs())
  const dataset = copies.findLast(({ source }) => source !== null)?.source
  return dataset ? { dataset, isDeclared: false } : undefined
}

/** Leases a ready copy. This reads no source, so every reader may. */
async function takeReady(call: DoorCall, dataset: Dataset, asked: unknown): Promise<Leased | undefined> {
  const { cache } = call.service
  const lease = placeLease(call, asked)
  const ready = await takeReadyCopy(cache, { dataset, lease })
  if (ready.outcome !== 'ready') return undefined
  await addUse(cache, { copy: ready.copy, lease, wait: { readyMs: 0 } })
  return { copy: ready.copy, leaseId: ready.leaseId, isStagedHere: false, lease }
}
