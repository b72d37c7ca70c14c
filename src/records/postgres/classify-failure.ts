import { DscError } from '../../failure/dsc-error.js'

/**
 * Classifies a failed statement. `conflict`: another transaction came first, retry. `lost`: the server or the route to
 * it is gone, it may come back. `failed`: retrying would not help.
 */
export function classifyFailure(error: unknown): 'conflict' | 'lost' | 'failed' {
  const code = codeOf(error)
  if (CONFLICTS.has(code)) return 'conflict'
  if (LOST.has(code) || /^08/.test(code)) return 'lost'
  // Another dsc changed the schema: a new connection plans its statements again.
  if (code === '0A000' && error instanceof Error && /cached plan/.test(error.message)) return 'lost'
  // pg reports a broken connection without a code.
  if (error instanceof Error && code === '' && LOST_MESSAGE.test(error.message)) return 'lost'
  return 'failed'
}

/** serialization_failure, deadlock_detected, and keys that two transactions inserted at once. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', '23505'])

/**
 * Shutdown, crash and start of the server, its connection and time limits (a stopped process may hold a lock until its
 * own limit), and network errors.
 */
const LOST: ReadonlySet<string> = new Set([
  ...['57P01', '57P02', '57P03', '57P05', '53300', '25006', '25P03', '55P03', '57014'],
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN'],
  ...['ENOENT'], // a missing Unix socket
])

/** Whether a server, or a pooler in front of it, answered, even if only that it cannot work now. */
export function isFromServer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error))
}

const LOST_MESSAGE =
  /connection terminated|timeout expired|timeout exceeded when trying to connect|query read timeout|client has encountered a connection error|not queryable|connection timeout/i

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Turns a failure of PostgreSQL itself into one the user understands; returns any other error unchanged. */
export function explainFailure(error: unknown, location: string): unknown {
  if (error instanceof DscError || !(error instanceof Error)) return error
  const code = codeOf(error)
  const isServers = isFromServer(error)
  if (code === '53100') {
    return new DscError('DISK_FULL', `no space left for the record ${location}`, {
      hint: 'free space on the database server',
      cause: error,
    })
  }
  const isAccess = /^(28|3D|42501)/.test(code)
  if (!isAccess && classifyFailure(error) === 'failed' && !/^(5|25|XX)/.test(code) && isServers) return error
  if (
    !isServers &&
    !isAccess &&
    classifyFailure(error) === 'failed' &&
    !/^(E|ERR_|SELF_|CERT_|DEPTH_)/.test(code)
  ) {
    return error
  }
  const message = error.message || (error instanceof AggregateError ? String(error.errors[0]) : '')
  return new DscError('RECORD_UNAVAILABLE', `cannot use the record ${location}: ${message} (${code})`, {
    hint: isAccess
      ? 'check user, password and database in `record:` of dsc.yaml (or PGUSER, PGPASSWORD)'
      : code === 'ENOTFOUND'
        ? 'check the host name in `record:` of dsc.yaml (or PGHOST)'
        : 'is the database server up, and reachable from this node? dsc doctor',
    cause: error,
  })
}
