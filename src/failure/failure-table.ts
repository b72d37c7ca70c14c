import { EXIT_CODES } from './exit-codes.js'

/** The properties that all failures of one code share. */
interface Failure {
  readonly exitCode: number
  readonly httpStatus: number
  /** Whether the same call may succeed later without any changes. */
  readonly isRetryable: boolean
  readonly meaning: string
}

/** Every failure a user can meet. The codes are public: scripts match on them. */
export const FAILURES = {
  USAGE: permanent('usage', 400, 'wrong arguments'),
  COMMAND_UNUSABLE: permanent('cannotRun', 400, 'the command after -- cannot be run'),
  COMMAND_NOT_FOUND: permanent('noCommand', 404, 'the command after -- does not exist'),
  PLAN_INFEASIBLE: permanent('tooSmall', 422, 'no plan fits the budget'),
  CONFIG_INVALID: permanent('setup', 400, 'the configuration is wrong'),
  DATASET_UNKNOWN: permanent('notFound', 404, 'unknown dataset'),
  COPY_NOT_FOUND: permanent('notFound', 404, 'no copy on this node'),
  RECORD_UNAVAILABLE: retryable('unavailable', 503, 'the record cannot be opened'),
  RECORD_NEWER: permanent('setup', 500, 'a newer dsc changed the record'),
  RECORD_ON_NETWORK_FS: permanent('setup', 500, 'SQLite on a network file system'),
  SOURCE_NOT_FOUND: permanent('notFound', 404, 'the source does not exist'),
  CHECKSUM_MISMATCH: retryable('damaged', 502, 'bytes differ from their checksum'),
  QUOTA_EXCEEDED: permanent('noRoom', 507, 'the limits leave no room'),
  DISK_FULL: permanent('tooSmall', 507, 'the file system is full'),
  SOURCE_DENIED: permanent('refused', 403, 'the source refuses access'),
  SOURCE_UNREACHABLE: retryable('tryLater', 502, 'the source does not answer'),
  SOURCE_CHANGED: retryable('tryLater', 409, 'an object changed during the download'),
  SOURCE_EMPTY: permanent('notFound', 404, 'the source has no objects'),
  SIGNATURE_INVALID: permanent('refused', 422, 'a release is not signed by the key'),
  UPDATE_REFUSED: permanent('conflict', 409, 'the executable cannot be replaced'),
  KEY_UNSAFE: permanent('refused', 422, 'a key cannot be a path'),
  UNDO_IMPOSSIBLE: permanent('conflict', 409, 'it cannot be taken back'),
  COPY_IN_USE: permanent('conflict', 409, 'the copy is leased or locked'),
  COPY_DAMAGED: permanent('damaged', 500, 'files are damaged'),
  STAGING_ELSEWHERE: retryable('conflict', 409, 'another process is staging it'),
  SOURCE_THROTTLED: retryable('tryLater', 503, 'the source limits requests'),
  SOURCE_STALLED: retryable('tryLater', 504, 'the source sends no bytes'),
  SOURCE_TRUNCATED: retryable('tryLater', 502, 'the source sends too few bytes'),
  CACHE_ROOT_INVALID: permanent('setup', 500, 'the cache folder is unusable'),
  DOCTOR_FAILED: permanent('setup', 500, 'a check of `dsc doctor` failed'),
  SETUP_FAILED: permanent('setup', 500, 'a step of `dsc setup` failed'),
  LEASE_NOT_FOUND: permanent('notFound', 404, 'no such lease'),
  CONFIRMATION_REQUIRED: permanent('usage', 409, '--yes is required'),
  DATASET_IN_USE: permanent('conflict', 409, 'the dataset still has copies'),
  VERSION_GONE: permanent('notFound', 410, 'data that a job used is gone'),
  SYSTEM_LIMIT: permanent('tooSmall', 507, 'a limit of this process or machine is reached'),
  IO_FAILED: permanent('setup', 500, 'the kernel refuses a file, or the disk fails'),
  PEER_LOST: permanent('unavailable', 502, 'a rank of the exchange is gone'),
  EXCHANGE_MISMATCH: permanent('conflict', 409, 'ranks disagree'),
  FEED_STATE_MISMATCH: permanent('conflict', 409, 'a state belongs to other data or another order'),
  FEED_MEMORY: permanent('tooSmall', 507, 'the memory of the feed is too small'),
  FEED_PROTOCOL: permanent('conflict', 400, 'client and feed do not match'),
  FEED_SAMPLE_LOST: permanent('damaged', 502, 'no source has an intact copy of a sample'),
  FEED_GONE: retryable('unavailable', 503, 'the feed or a storage node is gone'),
  RECORD_NOT_EMPTY: permanent('conflict', 409, 'the record to move into is not empty'),
  AGENT_UNREACHABLE: retryable('unavailable', 502, 'the agent of a node does not answer'),
  AGENT_REFUSED: permanent('refused', 401, 'an agent does not accept the token'),
  AGENT_UNSAFE: permanent('setup', 400, 'an agent would listen without protection'),
  NODES_FAILED: retryable('unavailable', 502, 'some of several nodes failed'),
  NODE_TAKEN: permanent('conflict', 409, 'the name of this node belongs to another machine or cache root'),
  DEADLINE_PASSED: retryable('interrupted', 504, 'it took longer than --deadline'),
  NOT_PERMITTED: permanent('refused', 403, "the node's service does not let this user do that"),
  SERVICE_UNREACHABLE: retryable('unavailable', 503, "the node's service does not answer at its door"),
  TOO_MANY_REQUESTS: retryable('tryLater', 429, 'this user asks for too much at once'),
  MEMORY_FILE_INVALID: permanent('usage', 400, 'a memory profile, plan or run report is unusable'),
  PLAN_MISMATCH: permanent('conflict', 409, 'a run or device differs from its memory plan'),
  HOST_MEMORY_SHORT: permanent('tooSmall', 507, 'the host has too little memory for it'),
  PARAMS_REFUSED: permanent('refused', 409, 'the parameter server refuses a push'),
  PARAMS_UNREACHABLE: retryable('unavailable', 503, 'the parameter server does not answer'),
  INTERRUPTED: retryable('interrupted', 499, 'stopped by a signal'),
} as const

/** The stable name of a failure; scripts match on it. */
export type FailureCode = keyof typeof FAILURES

function permanent(exit: keyof typeof EXIT_CODES, httpStatus: number, meaning: string): Failure {
  return { exitCode: EXIT_CODES[exit].exitCode, httpStatus, isRetryable: false, meaning }
}

function retryable(exit: keyof typeof EXIT_CODES, httpStatus: number, meaning: string): Failure {
  return { ...permanent(exit, httpStatus, meaning), isRetryable: true }
}
