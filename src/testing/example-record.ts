import type { Copy } from '../model/copy.js'
import type { LeaseHolder } from '../model/lease.js'
import type { RecordStore } from '../records/contract/record-store.js'
import { EXAMPLE_PROCESS, exampleCopy, exampleDataset } from './example-copies.js'

const GIB = 1024 ** 3

export interface ExampleRecordOptions {
  readonly copies: number
  readonly nodes: number
  readonly stagings: number
  readonly nowMs: number
}

/** A download that `advanceStagings` advances. */
export interface ExampleStaging {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly chargedBytes: number
  writtenBytes: number
}

/**
 * Fills an empty record through its port: ready copies over several nodes, every third leased, every tenth locked,
 * every 25th without a source, some downloads, a refusal and an eviction in the history. Deterministic except for ids.
 */
export async function fillRecord(
  record: RecordStore,
  options: ExampleRecordOptions,
): Promise<ExampleStaging[]> {
  const { nowMs } = options
  const nodes = Array.from({ length: options.nodes }, (_, at) => `gpu-${String(at + 1).padStart(2, '0')}`)
  for (const [at, node] of nodes.entries()) {
    await record.saveNode({
      node,
      cacheRoot: '/nvme/dsc',
      policy: {
        maxDatasets: Math.ceil(options.copies / options.nodes) + 8 - at,
        maxPercent: 80,
        minFreeBytes: 50 * GIB,
      },
      disk: {
        capacityBytes: Math.ceil(options.copies / options.nodes) * 14 * GIB + 200 * GIB,
        freeBytes: 180 * GIB,
        inodesTotal: 6_000_000,
        inodesFree: 5_100_000,
      },
      seenAtMs: nowMs - 2_000 - at * 60_000,
    })
  }
  for (let at = 0; at < options.copies; at += 1) {
    await record.addAdopted(exampleReady(at, nodes[at % nodes.length]!, nowMs), nowMs - 3_600_000)
  }
  for (let at = 0; at < options.copies; at += 1) {
    const dataset = nameOf(at)
    const node = nodes[at % nodes.length]!
    for (let holder = 0; at % 3 === 0 && holder <= at % 4; holder += 1) {
      await record.leaseReady(
        { dataset, node, lease: { task: `job-${4700 + at + holder}`, ...holderOf(holder, at, node, nowMs) } },
        nowMs - (at % 50) * 60_000,
      )
    }
    if (at % 10 === 3) {
      await record.setLock(
        { dataset },
        { by: 'ops', reason: 'benchmark of the week', atMs: nowMs - 86_400_000 },
        nowMs,
      )
    }
  }
  await record.addEvent({
    atMs: nowMs - 600_000,
    kind: 'evicted',
    node: nodes[0]!,
    dataset: 'old-flowers',
    copyId: null,
    task: 'job-4711',
    reason: 'least recently used, to make room for 12 GiB of dataset-0001',
    detail: {},
  })
  await record.addEvent({
    atMs: nowMs - 300_000,
    kind: 'refused',
    node: nodes[0]!,
    dataset: 'laion-huge',
    copyId: null,
    task: 'job-4712',
    reason: 'needs 2.1 TiB, has 180 GiB free and 96 GiB evictable; 12 leases and 3 locks hold the rest',
    detail: {},
  })
  const stagings: ExampleStaging[] = []
  for (let at = 0; at < options.stagings; at += 1) {
    stagings.push(await beginStaging(record, at, nodes[at % nodes.length]!, nowMs))
  }
  return stagings
}

/** Adds `bytes` to each download, and starts over at its end. */
export async function advanceStagings(
  record: RecordStore,
  stagings: readonly ExampleStaging[],
  bytes: number,
  nowMs: number,
): Promise<void> {
  for (const staging of stagings) {
    staging.writtenBytes = Math.min(staging.chargedBytes, staging.writtenBytes + bytes)
    await record.reportProgress(
      {
        copyId: staging.copyId,
        stageLeaseId: staging.stageLeaseId,
        writtenBytes: staging.writtenBytes,
        expiresAtMs: nowMs + 3_600_000,
      },
      nowMs,
    )
  }
}

async function beginStaging(
  record: RecordStore,
  at: number,
  node: string,
  nowMs: number,
): Promise<ExampleStaging> {
  const name = `webdata-${at + 1}`
  const request = (task: string) => ({
    dataset: name,
    node,
    lease: { task, holder: { kind: 'ttl' as const }, expiresAtMs: nowMs + 3_600_000 },
    source: exampleDataset(name),
    origin: 's3' as const,
    directoryOf: (copyId: string) => `/nvme/dsc/staging/${copyId}`,
    stager: { task, holder: { kind: 'ttl' as const }, expiresAtMs: nowMs + 3_600_000 },
    isRefresh: false,
  })
  const joined = await record.joinOrReserve(request(`job-${4800 + at}`), nowMs - 90_000)
  if (joined.outcome !== 'stage') throw new Error(`expected to stage ${name}, found ${joined.outcome}`)
  await record.joinOrReserve(request(`job-${4900 + at}`), nowMs)
  const chargedBytes = (at + 1) * 20 * GIB
  await record.admit(
    {
      copyId: joined.copy.copyId,
      stageLeaseId: joined.stageLeaseId,
      version: `${at}`.repeat(64).slice(0, 64),
      files: 120_000 * (at + 1),
      contentBytes: chargedBytes,
      chargedBytes,
      chargedInodes: 121_000,
    },
    () => ({
      outcome: 'admit',
      plan: { victims: [], freedBytes: 0, shortfalls: [], evictableBytes: 0, evictableCopies: 0 },
    }),
    nowMs - 80_000,
  )
  const staging = {
    copyId: joined.copy.copyId,
    stageLeaseId: joined.stageLeaseId,
    chargedBytes,
    writtenBytes: 0,
  }
  await advanceStagings(record, [staging], chargedBytes * 0.43, nowMs)
  return staging
}

/** Ready copy number `at`: always the same for the same `at`. */
export function exampleReady(at: number, node: string, nowMs: number): Copy {
  const name = nameOf(at)
  const { referenceCount: _references, isBeingStaged: _staged, ...copy } = exampleCopy(name)
  const bytes = (1 + ((at * 37) % 20)) * GIB + at * 1024 ** 2
  return {
    ...copy,
    copyId: `copy-${at}`,
    node,
    version: (0xa1b2c3d4e5 + at * 79_190_007).toString(16).padEnd(64, '7'),
    source: at % 25 === 24 ? null : exampleDataset(name),
    origin: at % 25 === 24 ? 'local' : 's3',
    directory: `/nvme/dsc/copies/${name}/1`,
    path: `/nvme/dsc/copies/${name}/1/files`,
    chargedBytes: bytes,
    writtenBytes: bytes,
    contentBytes: bytes - 1024 ** 2,
    files: 100 + at * 13,
    lastTask: `job-${4000 + at}`,
    lastUsedAtMs: nowMs - ((at * 7919) % 100_000) * 1000,
    createdAtMs: nowMs - 5 * 86_400_000,
    readyAtMs: nowMs - 4 * 86_400_000,
  }
}

function holderOf(
  which: number,
  at: number,
  host: string,
  nowMs: number,
): { holder: LeaseHolder; expiresAtMs: number | null } {
  if (which === 0) return { holder: { kind: 'slurm', jobId: String(4700 + at) }, expiresAtMs: null }
  if (which === 1) return { holder: { kind: 'ttl' }, expiresAtMs: nowMs + 7_200_000 }
  if (which === 2) return { holder: { kind: 'pod', uid: `pod-${at}` }, expiresAtMs: nowMs + 120_000 }
  return {
    holder: { ...EXAMPLE_PROCESS, host, pid: 1000 + at },
    expiresAtMs: null,
  }
}

function nameOf(at: number): string {
  return `dataset-${String(at + 1).padStart(4, '0')}`
}
