import { formatDuration } from '../../model/duration.js'
import { type LeaseHolder, type LeaseRequest, MAX_LEASE_MS } from '../../model/lease.js'

const MAX_TEXT_CHARACTERS = 256
/** How far a caller's clock may be ahead of the record's, in ms. */
const CLOCK_SLACK_MS = 60_000

/**
 * Reads the lease that a caller of an agent asks for, so that no remote caller can hold a copy forever. Only leases
 * whose end other nodes can see (a process, a Slurm job) need no expiry. Throws a RangeError with the problem.
 */
export function parseLeaseRequest(raw: unknown, nowMs: number): LeaseRequest {
  const { task, holder: rawHolder, expiresAtMs = null, parties } = fieldsOf(raw, 'lease')
  const holder = parseHolder(rawHolder)
  if (expiresAtMs !== null && !Number.isSafeInteger(expiresAtMs))
    throw new RangeError(`lease.expiresAtMs: expected ms since 1970, found ${JSON.stringify(expiresAtMs)}`)
  const endMs = expiresAtMs as number | null
  if (endMs === null && (holder.kind === 'ttl' || holder.kind === 'pod'))
    throw new RangeError(`lease.expiresAtMs: a lease of kind ${holder.kind} needs an end`)
  if (endMs !== null && endMs > nowMs + MAX_LEASE_MS + CLOCK_SLACK_MS)
    throw new RangeError(
      `lease.expiresAtMs: expected an end within ${formatDuration(MAX_LEASE_MS)}, found one in ${formatDuration(endMs - nowMs)}`,
    )
  return {
    task: parseText(task, 'lease.task'),
    holder,
    expiresAtMs: endMs,
    ...(parties !== undefined && { parties: parseParties(parties) }),
  }
}

const MAX_PARTIES = 64

/** Optional: agents of earlier versions send no parties. */
function parseParties(raw: unknown): readonly string[] {
  if (Array.isArray(raw) && raw.length <= MAX_PARTIES)
    return raw.map((party) => parseText(party, 'lease.parties'))
  throw new RangeError(`lease.parties: expected a list of at most ${MAX_PARTIES} names`)
}

/** Reads a holder and drops every field that holders do not have, because the result goes into the record. */
function parseHolder(raw: unknown): LeaseHolder {
  const holder = fieldsOf(raw, 'lease.holder')
  const textOf = (name: string) => parseText(holder[name], `lease.holder.${name}`)
  switch (holder.kind) {
    case 'ttl':
      return { kind: 'ttl' }
    case 'pod':
      return { kind: 'pod', uid: textOf('uid') }
    case 'slurm':
      return { kind: 'slurm', jobId: parseDigits(holder.jobId, 'lease.holder.jobId') }
    case 'process': {
      const { pid } = holder
      if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1)
        throw new RangeError(`lease.holder.pid: expected a process id, found ${JSON.stringify(pid)}`)
      return {
        kind: 'process',
        host: textOf('host'),
        machine: textOf('machine'),
        pid,
        startTicks: parseDigits(holder.startTicks, 'lease.holder.startTicks'),
        bootId: textOf('bootId'),
        pidNamespace: textOf('pidNamespace'),
      }
    }
    default:
      throw new RangeError(
        `lease.holder.kind: expected process, slurm, pod or ttl, found ${JSON.stringify(holder.kind)}`,
      )
  }
}

function fieldsOf(raw: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof raw !== 'object' || raw === null) throw new RangeError(`${name}: expected an object`)
  return raw as Record<string, unknown>
}

function parseText(raw: unknown, name: string): string {
  const isText = typeof raw === 'string' && raw !== '' && raw.length <= MAX_TEXT_CHARACTERS
  if (isText && !/\p{Cc}/u.test(raw)) return raw
  throw new RangeError(
    `${name}: expected a line of 1 to ${MAX_TEXT_CHARACTERS} characters, found ${JSON.stringify(raw)?.slice(0, 80)}`,
  )
}

function parseDigits(raw: unknown, name: string): string {
  if (typeof raw === 'string' && /^[0-9]{1,20}$/.test(raw)) return raw
  throw new RangeError(`${name}: expected digits, found ${JSON.stringify(raw)?.slice(0, 80)}`)
}
