import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, byteCounts, count, list, origin, time, version } from '../../answers/fields.js'
import { holder } from '../leases/lease-answer.js'

/** The lease handed out with a copy. */
const takenLease = z
  .strictObject({ leaseId: z.string(), task: z.string(), holder, expiresAt: time.nullable() })
  .meta({ id: 'leaseTaken' })

const downloaded = z
  .strictObject({
    fetchedBytes: byteCount,
    fetchedFiles: count,
    reusedBytes: byteCount,
    reusedFiles: count,
    retries: count,
    verifiedBy: z.record(z.string(), count),
    origins: z
      .strictObject({
        storeBytes: byteCount,
        peerBytes: byteCounts.meta({ description: 'by node' }),
        failed: z
          .record(z.string(), z.string())
          .optional()
          .meta({ description: 'what nodes failed with, by node' }),
      })
      .optional(),
  })
  .meta({ id: 'downloaded' })

/** A prepared dataset: its path on a node, and the lease that holds it. */
export const prepared = z
  .strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    path: z.string(),
    origin,
    files: count,
    contentBytes: byteCount,
    lease: takenLease,
    downloaded: downloaded.optional().meta({ description: 'absent where a copy was ready' }),
  })
  .meta({ id: 'prepared' })

/** `dsc prepare <dataset> --json`. */
export const preparedAnswer = answer(prepared.shape)

/** `dsc prepare <dataset> <dataset> --json`: in the order in which they were named. */
export const preparedSeveralAnswer = answer({ datasets: list(prepared) })

/** `dsc prepare <dataset> --remote --json` for a copy on another node. */
export const preparedElsewhereAnswer = answer({ ...prepared.shape, path: z.null(), url: z.string() })

/** `dsc prepare <dataset> --plan --json`. */
export const preparePlanAnswer = answer({
  dataset: z.string(),
  node: z.string(),
  // `ready`: a copy is there. `wait`: another stager is working on it. `fits`: it would be fetched. `evicts`: it would
  // be fetched after the listed evictions. `refused`: the policy has no room.
  outcome: z.enum(['ready', 'wait', 'fits', 'evicts', 'refused']),
  version: version.nullable(),
  path: z.string().nullable(),
  files: count,
  // Sum of the objects' sizes, and their space on disk.
  contentBytes: byteCount,
  diskBytes: byteCount,
  evictions: list(
    z.strictObject({
      dataset: z.string(),
      version: version.nullable(),
      diskBytes: byteCount,
      reason: z.string(),
    }),
  ),
  shortfalls: list(
    z.strictObject({
      limit: z.string(),
      allowed: z.number(),
      taken: z.number(),
      needed: z.number(),
      missing: z.number(),
    }),
  ).meta({ description: 'bytes, but datasets for maxDatasets and inodes for inodes' }),
  evictableBytes: byteCount,
  // One phrase for each copy that blocks a refused request.
  held: list(z.string()),
})

export type PreparedCopyAnswer = z.infer<typeof prepared>
export type PreparedAnswer = z.infer<typeof preparedAnswer>
export type PreparePlanAnswer = z.infer<typeof preparePlanAnswer>
export type PreparedElsewhereAnswer = z.infer<typeof preparedElsewhereAnswer>
