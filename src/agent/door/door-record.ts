import { DscError } from '../../failure/dsc-error.js'
import type { CopyUse } from '../../model/copy.js'
import { readFedTime } from '../../model/fed-time.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { pause } from '../../platform/poll.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { DoorClient } from './door-client.js'
import { PAGE_ROWS } from './door-wire.js'

/** Methods of the record for the service alone: commands that need one of them do not go through the door. */
const INSIDE = [
  'saveNode',
  'claimNode',
  'renameNode',
  'forgetNode',
  'listPlaces',
  'leaseReady',
  'joinOrReserve',
  'admit',
  'chargeCopy',
  'reportProgress',
  'markReady',
  'endStaging',
  'foreseeEviction',
  'beginEviction',
  'finishEviction',
  'noteReading',
  'expireLeases',
  'addAdopted',
  'returnCopy',
  'forgetCopies',
  'moveStripes',
  'pruneEvents',
] as const

/** How long the last note of a feed that was told to end may take, in ms. */
const LAST_NOTE_MS = 5000

/** The record of the node's service, seen through its door. `nowMs` is the service's clock when it was asked. */
export function openDoorRecord(client: DoorClient, serviceNowMs: number): RecordStore {
  const aheadMs = serviceNowMs - performance.now()
  return {
    ...refuseInside(),
    location: `the service at ${client.path}`,
    nowMs: () => Math.round(performance.now() + aheadMs),
    waitForChange: ({ pollMs, atMostMs, signal }) =>
      // It may be away, or of a version that knows no such wait.
      client.ask<void>('waitForChange', { atMostMs }, { signal }).catch(() => pause(pollMs, signal)),
    close: async () => {},
    findDataset: (name) => client.ask('findDataset', { name }),
    listDatasets: () => client.ask('listDatasets', {}),
    listNodes: () => client.ask('listNodes', {}),
    sumCopies: (filter) => client.ask('sumCopies', filter),
    listNewestDatasets: (filter, limit) => client.ask('listNewestDatasets', { ...filter, limit }),
    foreseeOrder: (request) => client.ask('foreseeOrder', request),
    findHindrance: () => client.ask('findHindrance', {}),
    listCopies: (filter) => readAll(client, 'listCopies', { filter, goOn: afterCopy }),
    listLeases: (filter) => readAll(client, 'listLeases', { filter, goOn: afterLease }),
    listEvents: (filter) =>
      readAll(client, 'listEvents', { filter, goOn: (last: RecordEvent) => ({ before: last.sequence }) }),
    addEvent: ({ kind, dataset, task, detail, atMs }) =>
      kind === 'fed'
        ? client.ask(
            'addFedTime',
            { dataset, task, ...readFedTime({ atMs, detail }) },
            {
              signal: AbortSignal.timeout(LAST_NOTE_MS),
            },
          )
        : refuse('addEvent')(),
    leaseCopy: async ({ copyId, lease }) =>
      (await client.ask<{ readonly leaseId: string } | undefined>('leaseCopy', { copyId, lease }))?.leaseId,
    releaseUses: (filter, _nowMs, by) => client.ask('releaseUses', { ...filter, isDeed: by !== undefined }),
    renewLease: (leaseId, expiresAtMs) => client.ask('renewLease', { leaseId, expiresAtMs }),
    handOverLease: (leaseId, holder) =>
      client.ask('handOverLease', { leaseId, pid: holder.kind === 'process' ? holder.pid : 0 }),
    setLock: (filter, lock) => client.ask('setLock', { ...filter, lock }),
    saveDataset: (dataset) => client.ask('saveDataset', { dataset }),
    removeDataset: (name) => client.ask('removeDataset', { name }),
  }
}

/** The place of a row, and not the row: its source and stripe may be longer than a request. */
function afterCopy({ dataset, node, createdAtMs, copyId }: CopyUse) {
  return { after: { dataset, node, createdAtMs, copyId } }
}

function afterLease({ createdAtMs, leaseId }: PlacedLease) {
  return { after: { createdAtMs, leaseId } }
}

/** Reads page after page, as the service gives at most one at a time; at most `filter.limit` rows. */
async function readAll<Row>(
  client: DoorClient,
  operation: string,
  {
    filter,
    goOn,
  }: {
    readonly filter: { readonly limit?: number | undefined }
    /** The part of the filter that asks for the rows after this one. */
    readonly goOn: (last: Row) => object
  },
): Promise<readonly Row[]> {
  const { limit: most = Number.POSITIVE_INFINITY } = filter
  const rows: Row[] = []
  while (rows.length < most) {
    const limit = Math.min(PAGE_ROWS, most - rows.length)
    const last = rows.at(-1)
    const page = await client.ask<readonly Row[]>(operation, { ...filter, ...(last && goOn(last)), limit })
    rows.push(...page)
    if (page.length < limit) break
  }
  return rows
}

function refuse(method: string) {
  return async (): Promise<never> => {
    throw new DscError('NOT_PERMITTED', `${method} is for the service of this node alone`, {
      hint: 'run the command as the user of the service, with its configuration',
    })
  }
}

function refuseInside(): Pick<RecordStore, (typeof INSIDE)[number]> {
  return Object.fromEntries(INSIDE.map((method) => [method, refuse(method)])) as unknown as Pick<
    RecordStore,
    (typeof INSIDE)[number]
  >
}
