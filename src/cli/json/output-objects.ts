import { z } from 'zod'
import { COPY_ORIGINS } from '../../model/copy.js'
import { FORMAT_NAMES } from '../../model/sample-formats.js'

/** A moment. */
export const time = z.iso.datetime().meta({ id: 'time', description: 'ISO 8601, UTC' })
/** A number of bytes. */
export const bytes = z.int().nonnegative().meta({ description: 'bytes' })
/** A number of things. */
export const count = z.int().nonnegative()
/** The version of a dataset. */
export const version = z.string().meta({ description: 'digest of the listing: 64 hexadecimal digits' })
/** An object whose fields are not fixed. */
export const open = z.record(z.string(), z.unknown())
/** What a copy goes through before it is gone. */
export const state = z.enum(['reserved', 'staging', 'ready', 'evicting'])
/** Where the bytes of a copy came from. */
export const origin = z.enum(COPY_ORIGINS)
/** A failure, as every command prints it. */
export const failure = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  id: z.string().optional().meta({ description: 'what dsc why explains it by' }),
})

/** Who locked a copy, and why. */
export const lock = z
  .strictObject({ by: z.string(), reason: z.string(), at: time })
  .meta({ id: 'lockOfCopy' })
/** The definition of a dataset. */
export const dataset = z
  .strictObject({
    name: z.string(),
    source: z.string(),
    include: z.array(z.string()),
    exclude: z.array(z.string()),
    endpoint: z.string().optional(),
    region: z.string().optional(),
    profile: z.string().optional(),
    pathStyle: z.boolean().optional(),
    anonymous: z.boolean().optional(),
    requesterPays: z.boolean().optional(),
    format: z.enum(FORMAT_NAMES).optional(),
    columns: z.array(z.string()).optional(),
  })
  .meta({ id: 'dataset' })
/** A copy of a dataset on a node. */
export const copy = z
  .strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    state,
    bytes: bytes.meta({ description: 'bytes on disk' }),
    lastTask: z.string().nullable(),
    locked: z.boolean(),
    referenceCount: count,
    lastUsedAt: time,
    copyId: z.string(),
    path: z.string(),
    origin: origin,
    source: z.string().nullable(),
    files: count,
    contentBytes: bytes,
    writtenBytes: bytes,
    lock: lock.nullable(),
    createdAt: time,
    readyAt: time.nullable(),
    stripe: z.strictObject({ index: count, count, nodes: z.array(z.string()) }).nullable(),
  })
  .meta({ id: 'copy' })
/** A version that lies in stripes on several nodes. */
export const layout = z
  .strictObject({
    dataset: z.string(),
    version,
    nodes: z.array(z.string()),
    complete: z.boolean(),
    missing: z.array(count),
    stripes: z.array(open),
  })
  .meta({ id: 'layout' })
/** A lease on a copy. */
export const lease = z
  .strictObject({
    leaseId: z.string(),
    dataset: z.string(),
    node: z.string(),
    copyId: z.string(),
    task: z.string(),
    purpose: z.enum(['use', 'stage', 'transfer']),
    holder: z.looseObject({ kind: z.enum(['process', 'slurm', 'pod', 'ttl']) }),
    createdAt: time,
    renewedAt: time,
    expiresAt: time.nullable(),
  })
  .meta({ id: 'lease' })
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
/** What is used of a quota. */
const limit = z.strictObject({ used: count, allowed: count.nullable() }).meta({ id: 'limit' })
/** A node with its disk and its quota. */
export const node = z
  .strictObject({
    node: z.string(),
    cacheRoot: z.string(),
    policy: open,
    disk: open,
    usage: z.strictObject({
      datasets: limit,
      bytes: limit,
      free: z.strictObject({ bytes, minBytes: bytes.nullable() }),
      inodes: limit.nullable(),
      outstandingBytes: bytes,
      onDisk: z.strictObject({ oursBytes: bytes, othersBytes: bytes, freeBytes: bytes }),
      evictableBytes: bytes,
      evictableCopies: count,
      shares: z.array(
        z.strictObject({
          party: z.string().nullable().describe('null = everybody without a share'),
          percent: z.number(),
          guaranteedBytes: bytes,
          guaranteedDatasets: count.nullable(),
          usedBytes: bytes,
          usedDatasets: count,
          borrowedBytes: bytes,
        }),
      ),
    }),
    seenAt: time,
    identity: open.optional(),
    agent: z.strictObject({ url: z.string(), seenAt: time }).nullable().optional(),
  })
  .meta({ id: 'node' })
/** A transfer between nodes. */
export const transfer = z
  .strictObject({
    copyId: z.string(),
    dataset: z.string(),
    node: z.string(),
    state: z.enum(['reserved', 'staging']),
    source: z.string().nullable(),
    writtenBytes: bytes,
    contentBytes: bytes.meta({ description: 'of the objects, which writtenBytes comes to' }),
    chargedBytes: bytes,
    files: count,
    startedAt: time,
    stager: z.string().nullable(),
    stagerSeenAt: time.nullable(),
    waitingTasks: z.array(z.string()),
    servedBy: z.array(z.string()),
  })
  .meta({ id: 'transfer' })
/** A task that does not have its dataset yet. */
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
