import { createOwnApi, type Leased, type NodeApi } from '../../cache/api/node-api.js'
import type { EvictionSelection } from '../../cache/eviction/evict-copies.js'
import { findReadersOf } from '../../cache/find-readers.js'
import { addUse } from '../../cache/leases/add-use.js'
import { takeReadyCopy } from '../../cache/leases/take-ready-copy.js'
import { planReady } from '../../cache/prepare/plan-prepare.js'
import { findPastDeed } from '../../cache/upkeep/undo-deed.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { type Dataset, findOwner, isUndeclared } from '../../model/dataset.js'
import type { Lease, LeaseRequest } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { isAdmin, judgeDeed } from '../../policy/rights.js'
import { parseLeaseRequest } from '../calls/parse-lease-request.js'
import { limitBandwidth } from '../calls/prepare-route.js'
import {
  type DoorCall,
  type DoorResult,
  findShown,
  keepShown,
  type Operation,
  requireReader,
  requireRight,
} from './door-call.js'
import { locateHolder } from './find-holder.js'
import { readHandedAccess } from './handed-access.js'
import { nameAsker } from './identify-asker.js'
import { openOwnSource } from './own-sources.js'
import {
  type Fields,
  pickFields,
  readFields,
  readFlag,
  readNumber,
  readOptional,
  readText,
  readTexts,
} from './read-input.js'

/** The operations that change the cache: staging and eviction. */
export const STAGING_OPERATIONS: Readonly<Record<string, Operation>> = {
  prepare: async (call) => {
    const request = readDataset(call.input)
    const isRefresh = readFlag(call.input, 'isRefresh')
    const known = await findReadable(call, request.name)
    const isReadable = known?.dataset.source === request.source && !isRefresh
    const ready = isReadable ? await takeReady(call, known.dataset) : null
    if (ready !== null) return { result: ready }
    const { dataset, isDeclared, call: reading } = judgeAsked(call, request, known)
    const room =
      isDeclared || isAdmin(call.asker, call.service.rules) ? undefined : takeUndeclared(call, dataset)
    const { anonymous: _, ...named } = dataset
    const asked = {
      dataset,
      asked: room && named, // that the service sends no credentials for a user is not the dataset's
      lease: placeLease(call),
      isRefresh,
      isPrefetch: readFlag(call.input, 'isPrefetch'),
      mayWait: readFlag(call.input, 'mayWait'),
      admit: room?.admit,
    }
    try {
      return {
        result: await openApi(reading).prepare(asked, {
          signal: call.signal,
          onProgress: hideVictims(call),
          isReadWhileComing: readFlag(call.input, 'isReadWhileComing'),
        }),
      }
    } finally {
      room?.free()
    }
  },
  takeReady: async (call) => {
    const known = await findReadable(call, readText(call.input, 'name'))
    return { result: known === undefined ? null : await takeReady(call, known.dataset) }
  },
  planPrepare: async (call) => {
    const asked = readDataset(call.input)
    const isRefresh = readFlag(call.input, 'isRefresh')
    const known = await findReadable(call, asked.name)
    const isReadable = known?.dataset.source === asked.source && !isRefresh
    const ready = isReadable ? await planReady(call.service.cache, asked.name) : undefined
    if (ready) return { result: ready }
    const { dataset, call: reading } = judgeAsked(call, asked, known)
    const request = {
      dataset,
      isRefresh,
      isPrefetch: readFlag(call.input, 'isPrefetch'),
      parties: choosePartiesOf(call, undefined),
    }
    const plan = await openApi(reading).planPrepare(request, call)
    return { result: { ...plan, evictions: await keepShown(call, plan.evictions) } }
  },
  planEviction: async (call) => {
    const isOwn = readFlag(call.input, 'isOwn')
    if (isOwn) requireRight(call, { kind: 'evict' })
    const selection = readSelection(call.input)
    await requireReaderOf(call, selection)
    const plan = await openApi(call).planEviction(selection, { isOwn })
    const names = plan.victims.map(({ copy }) => copy.dataset)
    const isShown = await findShown(call, names)
    return { result: { ...plan, victims: plan.victims.filter(({ copy }) => isShown(copy.dataset)) } }
  },
  evict: async (call) => {
    requireRight(call, { kind: 'evict' })
    const by = readFlag(call.input, 'isKept') ? nameAsker(call.asker) : undefined
    return { result: await openApi(call).evict(readSelection(call.input), { by }) }
  },
  listDeeds: async (call) => {
    const deeds = await openApi(call).listDeeds()
    const isShown = await findShown(
      call,
      new Set(deeds.flatMap(({ events }) => events.map(({ dataset }) => dataset))),
    )
    return {
      items: deeds.flatMap((deed) => {
        const events = deed.events.filter(({ dataset }) => isShown(dataset))
        return events.length > 0 ? [{ ...deed, events }] : []
      }),
    }
  },
  undo: answerUndo,
}

/** Takes back the deed that is named, or the asker's last, whose name is the one that the kernel gives. */
async function answerUndo(call: DoorCall): Promise<DoorResult> {
  const request = { id: readOptional(call.input, 'id', readNumber), by: nameAsker(call.asker) }
  const deed = await findPastDeed(call.service.cache, request)
  for (const { dataset } of deed.events) await requireReader(call, dataset)
  const isOfAsker = ({ detail }: RecordEvent) =>
    (detail.lease as Lease | undefined)?.holder.userId === call.asker.uid
  const isOwn = deed.by === request.by && deed.events.every(isOfAsker)
  requireRight(call, { kind: 'undo', of: deed.kind, isOwn })
  return { result: await openApi(call).undo({ ...request, id: deed.id }) }
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
function hideVictims({ asker, service, onProgress }: DoorCall): DoorCall['onProgress'] {
  const isShown = (copy: Copy) =>
    judgeDeed(asker, { kind: 'read', readers: findReadersOf(service.cache, copy) }, service.rules).may
  return (progress) =>
    onProgress(
      progress.step === 'evicting'
        ? { ...progress, victims: progress.victims.filter(({ copy }) => isShown(copy)) }
        : progress,
    )
}

/** Rejects with NOT_PERMITTED if the selection names a copy that the asker may not read. */
async function requireReaderOf(call: DoorCall, selection: EvictionSelection): Promise<void> {
  const { record, nowMs } = call.service.cache
  if (selection.kind === 'datasets') for (const name of selection.names) await requireReader(call, name)
  if (selection.kind !== 'copy') return
  for (const { dataset } of await record.listCopies({ copyId: selection.copyId }, nowMs()))
    await requireReader(call, dataset)
}

/** The lease that is asked for, with the holder and the parties that the service sees. */
export function placeLease(call: DoorCall): LeaseRequest {
  const nowMs = call.service.cache.nowMs()
  const asked = parseLeaseRequest(call.input.lease, nowMs)
  const placed = locateHolder(asked, { peer: call.peer, userId: call.asker.uid, nowMs })
  return { ...placed, parties: choosePartiesOf(call, asked.parties) }
}

/** The service's own cache; an asker may stage more slowly than the node, never faster. */
function openApi({ service: { cache }, input }: DoorCall): NodeApi {
  const wanted = readOptional(input, 'bandwidthBytesPerSecond', readNumber)
  if (wanted === undefined || wanted < 1) return createOwnApi(cache)
  const own = cache.nodeBudget?.bandwidthBytesPerSecond ?? Number.POSITIVE_INFINITY
  return createOwnApi(limitBandwidth(cache, Math.min(own, wanted)))
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
function judgeAsked(
  call: DoorCall,
  asked: Dataset,
  known: Known | undefined,
): Known & { readonly call: DoorCall } {
  const { name, source, include, exclude } = asked
  const { readers } = known?.dataset ?? {}
  const plain = { name, source, include, exclude, ...(readers && { readers }) }
  const isSame = known?.dataset.source === source
  const isDeclared = isSame && known.isDeclared
  parseSourceUrl(asked.source)
  const handed = readOptional(call.input, 'own', readHandedAccess)
  if (handed && !isDeclared && (known === undefined || isSame)) {
    const own = openOwnSource(call, asked, handed)
    call.service.onPrivate()
    return { ...own, isDeclared }
  }
  requireRight(call, { kind: 'prepare', source: asked.source, isDeclared })
  if (isDeclared) return { ...known, call }
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
  const own = { ...asked, ...(readers && { readers }) }
  return { dataset: mayDoAll ? own : { ...plain, anonymous: true }, isDeclared, call }
}

/** Finds the definition with the readers of the dataset. Rejects with NOT_PERMITTED unless the asker may read it. */
async function findReadable(call: DoorCall, name: string): Promise<Known | undefined> {
  const readers = await call.service.guarded.readersOf(name)
  requireRight(call, { kind: 'read', readers })
  const known = await findKnown(call, name)
  return known && { ...known, dataset: { ...known.dataset, readers } }
}

async function findKnown({ service }: DoorCall, name: string): Promise<Known | undefined> {
  const declared = service.cache.declared?.find((dataset) => dataset.name === name)
  if (declared) return { dataset: declared, isDeclared: true }
  const { record, nowMs } = service.cache
  const added = await record.findDataset(name)
  if (added) return { dataset: added, isDeclared: !isUndeclared(added) }
  const copies = await record.listCopies({ dataset: name }, nowMs())
  const dataset = copies.findLast(({ source }) => source !== null)?.source
  return dataset ? { dataset, isDeclared: false } : undefined
}

/** Leases a ready copy. This reads no source, so every reader may. */
async function takeReady(call: DoorCall, dataset: Dataset): Promise<Leased | null> {
  const { cache } = call.service
  const lease = placeLease(call)
  const ready = await takeReadyCopy(cache, { dataset, lease })
  if (ready.outcome !== 'ready') return null
  await addUse(cache, { copy: ready.copy, lease, waitedMs: 0 })
  return { copy: ready.copy, leaseId: ready.leaseId, isStagedHere: false, lease }
}

function readDataset(input: Fields): Dataset {
  const raw = readFields(input.dataset, 'dataset')
  return {
    name: readText(raw, 'name'),
    source: readText(raw, 'source'),
    include: readTexts(raw, 'include'),
    exclude: readTexts(raw, 'exclude'),
    ...pickFields(raw, { endpoint: readText, profile: readText, anonymous: readFlag }),
  }
}

function readSelection(input: Fields): EvictionSelection {
  const raw = readFields(input.selection, 'selection')
  const kind = readText(raw, 'kind')
  if (kind === 'datasets') return { kind, names: readTexts(raw, 'names') }
  if (kind === 'copy') return { kind, copyId: readText(raw, 'copyId') }
  if (kind === 'free') return { kind, bytes: readNumber(raw, 'bytes') }
  throw new RangeError(`selection.kind: expected datasets, copy or free, found ${JSON.stringify(kind)}`)
}
