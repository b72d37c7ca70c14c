import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, open, origin, ratio, time, version } from '../../answers/fields.js'
import { lease } from '../leases/lease-answer.js'

const state = z.enum(['reserved', 'staging', 'ready', 'evicting'])

/** The lock on a copy: by whom, and why. */
export const lock = z
  .strictObject({ by: z.string(), reason: z.string(), at: time })
  .meta({ id: 'lockOfCopy' })

/** A copy of a dataset on a node. */
export const copy = z
  .strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    state,
    diskBytes: byteCount.meta({ description: 'charged to the quota: reserved while staging, then on disk' }),
    lastTask: z.string().nullable(),
    isLocked: z.boolean(),
    referenceCount: count,
    lastUsedAt: time,
    copyId: z.string(),
    path: z.string(),
    origin,
    source: z.string().nullable(),
    files: count,
    contentBytes: byteCount.meta({ description: 'sum of the sizes of its files' }),
    writtenBytes: byteCount,
    lock: lock.nullable(),
    createdAt: time,
    readyAt: time.nullable(),
    stripe: z.strictObject({ index: count, count, nodes: list(z.string()) }).nullable(),
  })
  .meta({ id: 'copy' })

/** A version spread over several nodes in stripes. */
export const layout = z
  .strictObject({
    dataset: z.string(),
    version,
    nodes: list(z.string()),
    isComplete: z.boolean(),
    missing: list(count).meta({ description: 'indexes of the stripes that are not there' }),
    stripes: list(
      z.strictObject({
        index: count,
        node: z.string(),
        state: z.enum(['ready', 'staging', 'missing']),
        copyId: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'layout' })

/** A line of the history. */
export const event = z
  .strictObject({
    sequence: count,
    at: time,
    kind: z.string(),
    node: z.string(),
    dataset: z.string(),
    copyId: z.string().nullable(),
    task: z.string().nullable(),
    reason: z.string(),
    detail: open,
  })
  .meta({ id: 'event' })

const limit = z.strictObject({ used: count, allowed: count.nullable() }).meta({ id: 'limit' })

/** How full a node is. */
const usage = z.strictObject({
  datasets: limit,
  diskBytes: limit,
  free: z.strictObject({ freeBytes: byteCount, minFreeBytes: byteCount.nullable() }),
  inodes: limit.nullable(),
  outstandingBytes: byteCount,
  onDisk: z.strictObject({ oursBytes: byteCount, othersBytes: byteCount, freeBytes: byteCount }),
  evictableBytes: byteCount,
  evictableCopies: count,
  shares: list(
    z.strictObject({
      party: z.string().nullable().meta({ description: 'null = everybody without a share' }),
      percent: z.number(),
      guaranteedBytes: byteCount,
      guaranteedDatasets: count.nullable(),
      usedBytes: byteCount,
      usedDatasets: count,
      borrowedBytes: byteCount,
    }),
  ),
})

/** A node with its disk and its quota. */
export const node = z
  .strictObject({
    node: z.string(),
    cacheRoot: z.string(),
    policy: z.strictObject({
      maxDatasets: count.optional(),
      maxPercent: z.number().optional(),
      minFreeBytes: byteCount.optional(),
      lowWaterPercent: z.number().optional(),
      shares: list(z.strictObject({ party: z.string(), percent: z.number() })).optional(),
    }),
    disk: z.strictObject({
      capacityBytes: byteCount,
      freeBytes: byteCount,
      inodesTotal: count,
      inodesFree: count,
    }),
    usage,
    seenAt: time,
    identity: z
      .strictObject({
        cacheId: z.string(),
        machine: z.strictObject({ id: z.string(), host: z.string(), isLasting: z.boolean() }),
      })
      .optional(),
    agent: z.strictObject({ url: z.string(), seenAt: time }).nullable().optional(),
  })
  .meta({ id: 'node' })

/** A download, from the source or from other nodes. */
export const transfer = z
  .strictObject({
    copyId: z.string(),
    dataset: z.string(),
    node: z.string(),
    state: z.enum(['reserved', 'staging']),
    source: z.string().nullable(),
    writtenBytes: byteCount,
    contentBytes: byteCount.meta({ description: 'of the objects, which writtenBytes comes to' }),
    diskBytes: byteCount.meta({ description: 'charged to the quota' }),
    files: count,
    startedAt: time,
    stager: z.string().nullable(),
    stagerSeenAt: time.nullable(),
    waitingTasks: list(z.string()),
    servedBy: list(z.string()),
    readers: list(
      z.strictObject({ name: z.string(), ordered: count, waits: count, waitsFor: list(z.string()) }),
    )
      .optional()
      .meta({ description: 'who reads the copy during its download; of this node alone' }),
  })
  .meta({ id: 'transfer' })

/** A task that lacks its dataset. */
export const wait = z
  .strictObject({
    kind: z.enum(['staging', 'room']),
    task: z.string(),
    dataset: z.string(),
    node: z.string(),
    since: time,
    reason: z.string(),
  })
  .meta({ id: 'wait' })

const holding = z.strictObject({
  dataset: z.string(),
  nodes: list(z.strictObject({ node: z.string(), state, fillRatio: ratio, referenceCount: count })),
})

/** `dsc status --json`. */
export const statusAnswer = answer({
  takenAt: time,
  record: z.string(),
  nodes: list(node),
  copies: list(copy),
  layouts: list(layout),
  leases: list(lease),
  transfers: list(transfer),
  waits: list(wait),
  holdings: list(holding),
  events: list(event),
})

/** A line of `dsc status --ndjson`. */
export const statusLine = z.discriminatedUnion('type', [
  answer({ type: z.literal('node'), ...node.shape }),
  answer({ type: z.literal('copy'), ...copy.shape }),
  answer({ type: z.literal('layout'), ...layout.shape }),
  answer({ type: z.literal('lease'), ...lease.shape }),
  answer({ type: z.literal('transfer'), ...transfer.shape }),
  answer({ type: z.literal('wait'), ...wait.shape }),
  answer({ type: z.literal('event'), ...event.shape }),
])

/** `dsc history --json`. */
export const historyAnswer = answer({ events: list(event) })

/** A line of `dsc history --ndjson`. */
export const eventLine = answer(event.shape)

export type CopyAnswer = z.infer<typeof copy>
export type LayoutAnswer = z.infer<typeof layout>
export type EventAnswer = z.infer<typeof event>
export type NodeAnswer = z.infer<typeof node>
export type TransferAnswer = z.infer<typeof transfer>
export type WaitAnswer = z.infer<typeof wait>
export type StatusAnswer = z.infer<typeof statusAnswer>
