import { readdirSync } from 'node:fs'
import { z } from 'zod'
import { readLeasePages } from '../../cache/status/record-pages.js'
import { DscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { CopyUse } from '../../model/copy.js'
import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import { describeFedTime, MAX_FED_WAITS } from '../../model/fed-time.js'
import { MAX_LEASE_MS, type PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { MAX_BLOCKS } from '../../model/step-blocks.js'
import { LOOK_MS } from '../../platform/poll.js'
import { isAdmin } from '../../policy/rights.js'
import type {
  CopyFilter,
  EventFilter,
  LeaseFilter,
  ReleaseFilter,
} from '../../records/contract/record-requests.js'
import { expected, fields, flag, text, texts, whole } from '../calls/fields.js'
import { datasetFields } from './answer-staging.js'
import { type DoorCall, look, operation, requireReader, requireRight } from './door-call.js'
import { PAGE_ROWS } from './door-wire.js'
import { locateChild } from './find-holder.js'
import { nameAsker } from './identify-asker.js'
import { foresee, listNewest, listShown } from './list-shown.js'

/** The longest that somebody who looks may wait in one request, in ms. */
const MAX_WAIT_MS = 60_000
/** More GPUs than any node has, and more time than a feed keeps to itself. */
const MAX_GPUS = 4096
const MAX_SINCE_MS = 86_400_000

const place = { dataset: text.optional(), node: text.optional() }
const copyPlace = { ...place, copyId: text.optional() }
const released = { ...place, task: text.optional(), leaseId: text.optional() }
const limit = whole.default(PAGE_ROWS).transform((rows) => Math.max(1, Math.min(rows, PAGE_ROWS)))
const nothing = fields({})

const fedTime = fields({
  dataset: text,
  task: text,
  sinceAgoMs: countTo(MAX_SINCE_MS),
  gpus: countTo(MAX_GPUS),
  gpuMs: countTo(MAX_SINCE_MS * MAX_GPUS),
  waits: z.record(z.string(), whole, expected('waits by their names')),
  steps: fields({
    size: whole,
    blocks: z.array(z.tuple([whole, whole, whole, whole])).max(MAX_BLOCKS),
    causes: z.record(z.string().max(200), whole),
  }).optional(),
}).refine(({ sinceAgoMs, gpus, gpuMs }) => gpuMs <= sinceAgoMs * gpus, {
  path: ['gpuMs'],
  error: ({ input }) => {
    const { sinceAgoMs, gpus, gpuMs } = input as { sinceAgoMs: number; gpus: number; gpuMs: number }
    return `expected 0 to ${sinceAgoMs * gpus}, found ${gpuMs}`
  },
})

/** The methods of the record that may be asked for at the door. Everybody may look; each change asks for its right. */
export const RECORD_OPERATIONS = {
  findDataset: look(fields({ name: text }), ({ cache }, { name }) => cache.record.findDataset(name)),
  listDatasets: look(nothing, ({ cache }) => cache.record.listDatasets()),
  listNodes: look(nothing, ({ cache }) => cache.record.listNodes()),
  findHindrance: look(nothing, ({ cache }) => cache.record.findHindrance()),
  listCopies: look(
    fields({
      ...copyPlace,
      states: texts.optional(),
      datasets: texts.optional(),
      isStriped: z.literal(true, expected('true')).optional(),
      after: fields({ dataset: text, node: text, createdAtMs: whole, copyId: text }).optional(),
      limit,
    }) as z.ZodType<CopyFilter>,
    (call, filter) => {
      const { record, nowMs } = call.cache
      return listShown<CopyUse>(call, filter, (after, rows) =>
        record.listCopies({ ...filter, ...(after && { after }), limit: rows }, nowMs()),
      )
    },
  ),
  listLeases: look(
    fields({
      ...released,
      copyId: text.optional(),
      purpose: text.optional(),
      after: fields({ createdAtMs: whole, leaseId: text }).optional(),
      limit,
    }) as z.ZodType<LeaseFilter>,
    (call, filter) =>
      listShown<PlacedLease>(call, filter, (after, rows) =>
        call.cache.record.listLeases({ ...filter, ...(after && { after }), limit: rows }),
      ),
  ),
  listEvents: look(
    fields({
      ...copyPlace,
      kinds: texts.optional(),
      sinceMs: whole.optional(),
      task: text.optional(),
      failureId: text.optional(),
      before: whole.optional(),
      limit,
    }) as z.ZodType<EventFilter>,
    (call, filter) =>
      listShown<RecordEvent>(call, filter, (last, rows) =>
        call.cache.record.listEvents({
          ...filter,
          ...(last && { before: last.sequence }),
          limit: rows,
        }),
      ),
  ),
  sumCopies: look(fields(place), async (call, filter) => {
    const { record, nowMs } = call.cache
    if (filter.dataset !== undefined) await requireReader(call, filter.dataset)
    return record.sumCopies(filter, nowMs())
  }),
  listNewestDatasets: look(fields({ ...place, limit }), listNewest),
  foreseeOrder: look(fields({ node: text, dataset: text, limit }), foresee),
  waitForChange: look(fields({ atMostMs: whole }), ({ cache, signal }, asked) => {
    const atMostMs = Math.min(asked.atMostMs, MAX_WAIT_MS)
    return cache.record.waitForChange({
      pollMs: Math.min(atMostMs, LOOK_MS.node),
      atMostMs,
      signal,
    })
  }),
  releaseUses: operation(fields({ ...released, isDeed: flag.default(false) }), {}, release),
  renewLease: operation(fields({ leaseId: text, expiresAtMs: whole.nullable().default(null) }), {}, renew),
  handOverLease: operation(fields({ leaseId: text, pid: whole }), {}, handOver),
  setLock: operation(
    fields({ ...copyPlace, lock: fields({ reason: text }).nullable().default(null) }),
    { right: { kind: 'lock' } },
    ({ asker, cache }, { lock, ...filter }) => {
      const { record, nowMs } = cache
      const by = nameAsker(asker) // the kernel's word, and not that of the request
      return record.setLock(filter, lock && { ...lock, by, atMs: nowMs() }, nowMs(), by)
    },
  ),
  saveDataset: operation(
    fields({
      dataset: datasetFields.extend({
        region: text.optional(),
        pathStyle: flag.optional(),
        requesterPays: flag.optional(),
      }),
    }),
    { right: { kind: 'declare' } },
    declare,
  ),
  removeDataset: operation(fields({ name: text }), { right: { kind: 'declare' } }, ({ cache }, { name }) =>
    cache.record.removeDataset(name),
  ),
  addFedTime: operation(fedTime, {}, noteFedTime),
}

function countTo(most: number) {
  const message = expected(`0 to ${most}`)
  return whole.min(0, message).max(most, message)
}

/** Ends the asker's own leases that match; of an admin, all that match. With `isDeed`, the asker can take it back. */
async function release(
  call: DoorCall,
  { isDeed, ...filter }: ReleaseFilter & { readonly isDeed: boolean },
): Promise<number> {
  const { record, nowMs } = call.cache
  const by = isDeed ? nameAsker(call.asker) : undefined
  if (isAdmin(call.asker, call.service.rules)) return record.releaseUses(filter, nowMs(), by)
  const matching: PlacedLease[] = []
  for await (const page of readLeasePages(record, { ...filter, purpose: 'use' })) {
    throwIfStopped(call.signal)
    matching.push(...page)
  }
  const own = matching.filter(({ holder }) => holder.userId === call.asker.uid)
  const [other] = matching
  if (filter.leaseId !== undefined && own.length === 0 && other)
    requireRight(call, { kind: 'end-lease', holderUid: other.holder.userId })
  let ended = 0
  const atMs = nowMs() // one deed
  for (const { leaseId } of own) ended += await record.releaseUses({ leaseId }, atMs, by)
  return ended
}

/** The lease that the request names, or undefined. Rejects with NOT_PERMITTED if it is another user's. */
async function findOwnLease(call: DoorCall, leaseId: string): Promise<PlacedLease | undefined> {
  const [lease] = await call.cache.record.listLeases({ leaseId, purpose: 'use' })
  if (lease) requireRight(call, { kind: 'end-lease', holderUid: lease.holder.userId })
  return lease
}

/** A lease without an end needs a process whose end the service sees; any other gets one. */
async function renew(
  call: DoorCall,
  { leaseId, expiresAtMs: wantedMs }: Pick<PlacedLease, 'leaseId' | 'expiresAtMs'>,
): Promise<boolean> {
  const { record, nowMs } = call.cache
  const lease = await findOwnLease(call, leaseId)
  if (lease === undefined) return false
  const latestMs = nowMs() + MAX_LEASE_MS
  const isSeen = lease.holder.kind === 'process'
  const expiresAtMs = wantedMs === null ? (isSeen ? null : latestMs) : Math.min(wantedMs, latestMs)
  return record.renewLease(leaseId, expiresAtMs, nowMs())
}

/** Hands a lease over to the command that `dsc run` has started; a process that is not seen leaves it where it is. */
async function handOver(
  call: DoorCall,
  { leaseId, pid }: { readonly leaseId: string; readonly pid: number },
): Promise<boolean> {
  const { record, nowMs } = call.cache
  const lease = await findOwnLease(call, leaseId)
  const userId = call.asker.uid
  const holder = locateChild(call.peer, pid, { userId, listPids })
  return lease !== undefined && holder !== undefined && record.handOverLease(leaseId, holder, nowMs())
}

function listPids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
}

async function declare({ cache }: DoorCall, { dataset }: { readonly dataset: Dataset }): Promise<void> {
  const { record, declared, nowMs } = cache
  parseDatasetName(dataset.name)
  if (declared?.some(({ name }) => name === dataset.name))
    throw new DscError('USAGE', `${dataset.name} is declared in the dsc.yaml of the service, which counts`)
  parseSourceUrl(dataset.source)
  await record.saveDataset(dataset, nowMs())
}

/** Records how the asker's feed spent its time, at this node's clock. Rejects a task that another user holds. */
async function noteFedTime(
  call: DoorCall,
  { dataset, task, ...time }: z.infer<typeof fedTime>,
): Promise<void> {
  const { record, node, nowMs } = call.cache
  await requireReader(call, dataset)
  const kept = Object.entries(time.waits).slice(0, MAX_FED_WAITS)
  const waits = Object.fromEntries(kept.map(([name, gpuMs]) => [name.slice(0, 200), gpuMs]))
  for (const { holder } of await record.listLeases({ task, purpose: 'use' }))
    if (holder.userId !== undefined && holder.userId !== call.asker.uid)
      throw new DscError('NOT_PERMITTED', `the task ${task} is another user's`)
  await record.addEvent({
    ...describeFedTime({ ...time, waits }, nowMs()),
    node,
    dataset,
    copyId: null,
    task,
  })
}
