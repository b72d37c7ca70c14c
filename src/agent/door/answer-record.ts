import { readdirSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { CopyUse } from '../../model/copy.js'
import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import { MAX_LEASE_MS, type PlacedLease } from '../../model/lease.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { LOOK_MS } from '../../platform/poll.js'
import { isAdmin } from '../../policy/rights.js'
import type {
  CopyFilter,
  EventFilter,
  LeaseFilter,
  ReleaseFilter,
} from '../../records/contract/record-requests.js'
import { answerFedTime } from './answer-fed-time.js'
import {
  type DoorCall,
  type DoorResult,
  findShown,
  keepShown,
  type Operation,
  requireReader,
  requireRight,
} from './door-call.js'
import { PAGE_ROWS } from './door-wire.js'
import { locateChild } from './find-holder.js'
import { nameAsker } from './identify-asker.js'
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

/** The longest that somebody who looks may wait in one request, in ms. */
const MAX_WAIT_MS = 60_000

/** The methods of the record that may be asked for at the door. Everybody may look; each change asks for its right. */
export const RECORD_OPERATIONS: Readonly<Record<string, Operation>> = {
  findDataset: async ({ service, input }) => ({
    result: (await service.cache.record.findDataset(readText(input, 'name'))) ?? null,
  }),
  listDatasets: async ({ service }) => ({ items: await service.cache.record.listDatasets() }),
  listNodes: async ({ service }) => ({ items: await service.cache.record.listNodes() }),
  listCopies: async (call) => {
    const { record, nowMs } = call.service.cache
    const filter = readCopyFilter(call.input)
    return listShown<CopyUse>(call, filter, (after, limit) =>
      record.listCopies({ ...filter, ...(after && { after }), limit }, nowMs()),
    )
  },
  sumCopies: async (call) => {
    const { record, nowMs } = call.service.cache
    return { items: await record.sumCopies(await readPlace(call), nowMs()) }
  },
  listNewestDatasets: async (call) => {
    const filter = await readPlace(call)
    const limit = readLimit(call.input)
    const { names, total } = await call.service.cache.record.listNewestDatasets(filter, PAGE_ROWS)
    const shown: string[] = []
    let lookedAt = 0
    while (shown.length < limit && lookedAt < names.length) {
      const next = names.slice(lookedAt, lookedAt + limit)
      shown.push(...next.filter(await findShown(call, next)))
      lookedAt += next.length
    }
    const hidden = lookedAt - shown.length
    return { result: { names: shown.slice(0, limit), total: total - hidden } }
  },
  listLeases: async (call) => {
    const filter = readLeaseFilter(call.input)
    return listShown<PlacedLease>(call, filter, (after, limit) =>
      call.service.cache.record.listLeases({ ...filter, ...(after && { after }), limit }),
    )
  },
  listEvents: async (call) => {
    const filter = readEventFilter(call.input)
    return listShown<RecordEvent>(call, filter, (last, limit) =>
      call.service.cache.record.listEvents({ ...filter, ...(last && { before: last.sequence }), limit }),
    )
  },
  waitForChange: async ({ service, input, signal }) => {
    const atMostMs = Math.min(readNumber(input, 'atMostMs'), MAX_WAIT_MS)
    await service.cache.record.waitForChange({ pollMs: Math.min(atMostMs, LOOK_MS.node), atMostMs, signal })
    return { result: null }
  },
  findHindrance: async ({ service }) => ({ result: (await service.cache.record.findHindrance()) ?? null }),
  releaseUses: answerRelease,
  renewLease: answerRenewal,
  handOverLease: answerHandOver,
  setLock: answerLock,
  saveDataset: answerDeclaration,
  addFedTime: answerFedTime,
  removeDataset: async (call) => {
    requireRight(call, { kind: 'declare' })
    return { items: await call.service.cache.record.removeDataset(readText(call.input, 'name')) }
  },
}

const PLACE = { dataset: readText, node: readText }
const RELEASED = { ...PLACE, task: readText, leaseId: readText }

/** Reads a place that sums are asked for. Rejects with NOT_PERMITTED for a dataset that the asker may not read. */
async function readPlace(call: DoorCall) {
  const place = pickFields(call.input, PLACE)
  if (place.dataset !== undefined) await requireReader(call, place.dataset)
  return place
}

/**
 * Lists rows about datasets that the asker may read, as many as were asked for if there are so many: a client takes a
 * shorter page for the last. Rejects with NOT_PERMITTED if the filter names a dataset that they may not read.
 */
async function listShown<Row extends { readonly dataset: string }>(
  call: DoorCall,
  filter: { readonly dataset?: string | undefined; readonly limit?: number | undefined },
  read: (last: Row | undefined, limit: number) => Promise<readonly Row[]>,
): Promise<DoorResult> {
  if (filter.dataset !== undefined) await requireReader(call, filter.dataset)
  const limit = filter.limit ?? PAGE_ROWS
  const items: Row[] = []
  let last: Row | undefined
  for (;;) {
    throwIfStopped(call.signal)
    const rows = last === undefined ? limit : PAGE_ROWS
    const page = await read(last, rows)
    items.push(...(await keepShown(call, page)))
    if (page.length < rows || items.length >= limit) return { items: items.slice(0, limit) }
    last = page.at(-1)
  }
}

function readLimit(input: Fields): number {
  return Math.max(1, Math.min(readOptional(input, 'limit', readNumber) ?? PAGE_ROWS, PAGE_ROWS))
}

function readCopyFilter(input: Fields): CopyFilter {
  const after = readOptional(input, 'after', (fields, name) => readFields(fields[name], name))
  return {
    ...pickFields(input, { ...PLACE, copyId: readText, states: readTexts, datasets: readTexts }),
    ...(readFlag(input, 'isStriped') && { isStriped: true }),
    ...(after && {
      after: {
        dataset: readText(after, 'dataset'),
        node: readText(after, 'node'),
        createdAtMs: readNumber(after, 'createdAtMs'),
        copyId: readText(after, 'copyId'),
      },
    }),
    limit: readLimit(input),
  } as CopyFilter
}

function readLeaseFilter(input: Fields): LeaseFilter {
  const after = readOptional(input, 'after', (fields, name) => readFields(fields[name], name))
  return {
    ...pickFields(input, { ...RELEASED, copyId: readText, purpose: readText }),
    ...(after && {
      after: { createdAtMs: readNumber(after, 'createdAtMs'), leaseId: readText(after, 'leaseId') },
    }),
    limit: readLimit(input),
  } as LeaseFilter
}

function readEventFilter(input: Fields): EventFilter {
  const { kinds, ...rest } = pickFields(input, {
    ...PLACE,
    copyId: readText,
    kinds: readTexts,
    sinceMs: readNumber,
    task: readText,
    failureId: readText,
    before: readNumber,
  })
  return {
    ...rest,
    ...(kinds && { kinds: kinds as readonly RecordEventKind[] }),
    limit: readLimit(input),
  }
}

/** Ends the asker's own leases that match; of an admin, all that match. With `isDeed`, the asker can take it back. */
async function answerRelease(call: DoorCall): Promise<DoorResult> {
  const { record, nowMs } = call.service.cache
  const filter = pickFields(call.input, RELEASED)
  const by = readFlag(call.input, 'isDeed') ? nameAsker(call.asker) : undefined
  if (isAdmin(call.asker, call.service.rules))
    return { result: await record.releaseUses(filter, nowMs(), by) }
  const matching = await listAllUses(call, filter)
  const own = matching.filter(({ holder }) => holder.userId === call.asker.uid)
  const [other] = matching
  if (filter.leaseId !== undefined && own.length === 0 && other)
    requireRight(call, { kind: 'end-lease', holderUid: other.holder.userId })
  let released = 0
  const atMs = nowMs() // one deed
  for (const { leaseId } of own) released += await record.releaseUses({ leaseId }, atMs, by)
  return { result: released }
}

async function listAllUses(
  { service, signal }: DoorCall,
  filter: ReleaseFilter,
): Promise<readonly PlacedLease[]> {
  const found: PlacedLease[] = []
  for (;;) {
    throwIfStopped(signal)
    const after = found.at(-1)
    const page = await service.cache.record.listLeases({
      ...filter,
      purpose: 'use',
      limit: PAGE_ROWS,
      ...(after && { after }),
    })
    found.push(...page)
    if (page.length < PAGE_ROWS) return found
  }
}

/** The lease that the request names, or undefined. Rejects with NOT_PERMITTED if it is another user's. */
async function findOwnLease(call: DoorCall): Promise<PlacedLease | undefined> {
  const leaseId = readText(call.input, 'leaseId')
  const [lease] = await call.service.cache.record.listLeases({ leaseId, purpose: 'use' })
  if (lease) requireRight(call, { kind: 'end-lease', holderUid: lease.holder.userId })
  return lease
}

/** A lease without an end needs a process whose end the service sees; any other gets one. */
async function answerRenewal(call: DoorCall): Promise<DoorResult> {
  const { record, nowMs } = call.service.cache
  const lease = await findOwnLease(call)
  if (lease === undefined) return { result: false }
  const wantedMs = readOptional(call.input, 'expiresAtMs', readNumber) ?? null
  const latestMs = nowMs() + MAX_LEASE_MS
  const isSeen = lease.holder.kind === 'process'
  const expiresAtMs = wantedMs === null ? (isSeen ? null : latestMs) : Math.min(wantedMs, latestMs)
  return { result: await record.renewLease(lease.leaseId, expiresAtMs, nowMs()) }
}

/** Hands a lease over to the command that `dsc run` has started; a process that is not seen leaves it where it is. */
async function answerHandOver(call: DoorCall): Promise<DoorResult> {
  const { record, nowMs } = call.service.cache
  const lease = await findOwnLease(call)
  const userId = call.asker.uid
  const holder = locateChild(call.peer, readNumber(call.input, 'pid'), { userId, listPids })
  if (lease === undefined || holder === undefined) return { result: false }
  return { result: await record.handOverLease(lease.leaseId, holder, nowMs()) }
}

function listPids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
}

/** Locks in the name that the kernel gave, and ignores the one in the request. */
async function answerLock(call: DoorCall): Promise<DoorResult> {
  requireRight(call, { kind: 'lock' })
  const { record, nowMs } = call.service.cache
  const filter = pickFields(call.input, { ...PLACE, copyId: readText })
  const lock = readOptional(call.input, 'lock', (fields, name) => readFields(fields[name], name))
  const by = nameAsker(call.asker)
  const changed = await record.setLock(
    filter,
    lock ? { by, reason: readText(lock, 'reason'), atMs: nowMs() } : null,
    nowMs(),
    by,
  )
  return { items: changed }
}

async function answerDeclaration(call: DoorCall): Promise<DoorResult> {
  requireRight(call, { kind: 'declare' })
  const { record, nowMs } = call.service.cache
  const raw = readFields(call.input.dataset, 'dataset')
  const dataset: Dataset = {
    name: parseDatasetName(readText(raw, 'name')),
    source: readText(raw, 'source'),
    include: readTexts(raw, 'include'),
    exclude: readTexts(raw, 'exclude'),
    ...pickFields(raw, { endpoint: readText, region: readText, profile: readText }),
    ...pickFields(raw, { pathStyle: readFlag, anonymous: readFlag, requesterPays: readFlag }),
  }
  if (call.service.cache.declared?.some(({ name }) => name === dataset.name))
    throw new DscError('USAGE', `${dataset.name} is declared in the dsc.yaml of the service, which counts`)
  parseSourceUrl(dataset.source)
  await record.saveDataset(dataset, nowMs())
  return { result: null }
}
