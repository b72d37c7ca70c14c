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
  'beginEviction',
  'finishEviction',
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
    findDataset: async (name) => (await client.ask('findDataset', { name })) ?? undefined,
    listDatasets: () => client.list('listDatasets', {}),
    listNodes: () => client.list('listNodes', {}),
    sumCopies: (filter) => client.list('sumCopies', filter),
    listNewestDatasets: (filter, limit) => client.ask('listNewestDatasets', { ...filter, limit }),
    findHindrance: async () => (await client.ask('findHindrance', {})) ?? undefined,
    listCopies: (filter) =>
      readAll<CopyUse>(filter.limit, (last, limit) => {
        const after = last && {
          after: {
            dataset: last.dataset,
            node: last.node,
            createdAtMs: last.createdAtMs,
            copyId: last.copyId,
          },
        }
        return client.list('listCopies', { ...filter, ...after, limit })
      }),
    listLeases: (filter) =>
      readAll<PlacedLease>(filter.limit, (last, limit) => {
        const after = last && { after: { createdAtMs: last.createdAtMs, leaseId: last.leaseId } }
        return client.list('listLeases', { ...filter, ...after, limit })
      }),
    listEvents: (filter) =>
      readAll<RecordEvent>(filter.limit, (last, limit) =>
        client.list('listEvents', { ...filter, ...(last && { before: last.sequence }), limit }),
      ),
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
      (await client.ask<{ readonly leaseId: string } | null>('leaseCopy', { copyId, lease }))?.leaseId,
    releaseUses: (filter, _nowMs, by) => client.ask('releaseUses', { ...filter, isDeed: by !== undefined }),
    renewLease: (leaseId, expiresAtMs) => client.ask('renewLease', { leaseId, expiresAtMs }),
    handOverLease: (leaseId, holder) =>
      client.ask('handOverLease', { leaseId, pid: holder.kind === 'process' ? holder.pid : 0 }),
    setLock: (filter, lock) => client.list('setLock', { ...filter, lock }),
    saveDataset: (dataset) => client.ask('saveDataset', { dataset }),
    removeDataset: (name) => client.list('removeDataset', { name }),
  }
}

/** Reads page after page, as the service gives at most one at a time; at most `limit` rows. */
async function readAll<Row>(
  limit = Number.POSITIVE_INFINITY,
  read: (last: Row | undefined, limit: number) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  while (rows.length < limit) {
    const wanted = Math.min(PAGE_ROWS, limit - rows.length)
    const page = await read(rows.at(-1), wanted)
    rows.push(...page)
    if (page.length < wanted) break
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
