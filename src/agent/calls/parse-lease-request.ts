import { z } from 'zod'
import { formatDuration } from '../../model/duration.js'
import { type LeaseRequest, MAX_LEASE_MS } from '../../model/lease.js'
import { expected, fields, line, list, readInput, whole } from './fields.js'

/** How far a caller's clock may be ahead of the record's, in ms. */
const CLOCK_SLACK_MS = 60_000
const MAX_PARTIES = 64

const text = line(1, 256)
const digits = z.string(expected('digits')).regex(/^[0-9]{1,20}$/, expected('digits'))
const userId = whole.min(0, expected('a user id')).optional()

/** Drops every field that holders do not have, because the result goes into the record. */
const holder = z.discriminatedUnion(
  'kind',
  [
    fields({ kind: z.literal('ttl'), userId }),
    fields({ kind: z.literal('pod'), uid: text, userId }),
    fields({ kind: z.literal('slurm'), jobId: digits, userId }),
    fields({
      kind: z.literal('process'),
      host: text,
      machine: text,
      pid: whole.min(1, expected('a process id')),
      startTicks: digits,
      bootId: text,
      pidNamespace: text,
      userId,
    }),
  ],
  expected('a holder of the kind process, slurm, pod or ttl'),
)

const leaseRequest = fields({
  task: text,
  holder,
  expiresAtMs: z.int(expected('ms since 1970')).nullable().default(null),
  // Agents of earlier versions send none.
  parties: list(text, MAX_PARTIES).optional(),
})

/**
 * Reads the lease that a caller of an agent asks for, so that no remote caller can hold a copy forever. Only leases
 * whose end other nodes can see (a process, a Slurm job) need no expiry. Throws a RangeError with the problem.
 */
export function parseLeaseRequest(raw: unknown, nowMs: number): LeaseRequest {
  const lease = readInput(leaseRequest, raw, 'lease')
  const { kind } = lease.holder
  const { expiresAtMs: endMs } = lease
  if (endMs === null && (kind === 'ttl' || kind === 'pod'))
    throw new RangeError(`lease.expiresAtMs: a lease of kind ${kind} needs an end`)
  if (endMs !== null && endMs > nowMs + MAX_LEASE_MS + CLOCK_SLACK_MS)
    throw new RangeError(
      `lease.expiresAtMs: expected an end within ${formatDuration(MAX_LEASE_MS)}, found one in ${formatDuration(endMs - nowMs)}`,
    )
  return lease
}
