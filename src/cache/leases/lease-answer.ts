import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { count, list, time } from '../../answers/fields.js'

const userId = count
  .optional()
  .meta({ description: "uid of the user who asked the node's service for it; absent: its owner" })

/** The holder of a lease. */
export const holder = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('process'),
      host: z.string(),
      machine: z.string(),
      pid: count,
      startTicks: z.string(),
      bootId: z.string(),
      pidNamespace: z.string(),
      userId,
    }),
    z.strictObject({ kind: z.literal('slurm'), jobId: z.string(), userId }),
    z.strictObject({ kind: z.literal('pod'), uid: z.string(), userId }),
    z.strictObject({ kind: z.literal('ttl'), userId }),
  ])
  .meta({ id: 'holder' })

/** A lease on a copy. */
export const lease = z
  .strictObject({
    leaseId: z.string(),
    dataset: z.string(),
    node: z.string(),
    copyId: z.string(),
    task: z.string(),
    purpose: z.enum(['use', 'stage', 'transfer']),
    holder,
    createdAt: time,
    renewedAt: time,
    expiresAt: time.nullable(),
  })
  .meta({ id: 'lease' })

const heldLease = z
  .strictObject({ ...lease.shape, staleReason: z.string().nullable() })
  .meta({ id: 'leaseHeld' })

/** `dsc leases --json`. */
export const leasesAnswer = answer({ leases: list(heldLease) })

/** A line of `dsc leases --ndjson`. */
export const leaseLine = answer(heldLease.shape)

export type LeaseAnswer = z.infer<typeof lease>
export type HeldLeaseAnswer = z.infer<typeof heldLease>
