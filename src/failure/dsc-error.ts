import type { FailureAnswer } from './failure-answer.js'
import { redactText } from './redact.js'

/**
 * Every failure a user can meet. Codes and exit codes are public: scripts match on them. `isRetryable`: the same call
 * may succeed later without any changes.
 */
export const FAILURES = {
  USAGE: { exitCode: 2, httpStatus: 400, isRetryable: false, meaning: 'wrong arguments' },
  PLAN_INFEASIBLE: {
    exitCode: 3,
    httpStatus: 422,
    isRetryable: false,
    meaning: 'no plan fits the budget',
  },
  CONFIG_INVALID: { exitCode: 4, httpStatus: 400, isRetryable: false, meaning: 'the configuration is wrong' },
  DATASET_UNKNOWN: { exitCode: 5, httpStatus: 404, isRetryable: false, meaning: 'unknown dataset' },
  COPY_NOT_FOUND: {
    exitCode: 6,
    httpStatus: 404,
    isRetryable: false,
    meaning: 'no copy on this node',
  },
  RECORD_UNAVAILABLE: {
    exitCode: 7,
    httpStatus: 503,
    isRetryable: true,
    meaning: 'the record cannot be opened',
  },
  RECORD_NEWER: {
    exitCode: 8,
    httpStatus: 500,
    isRetryable: false,
    meaning: 'a newer dsc changed the record',
  },
  RECORD_ON_NETWORK_FS: {
    exitCode: 9,
    httpStatus: 500,
    isRetryable: false,
    meaning: 'SQLite on a network file system',
  },
  SOURCE_NOT_FOUND: {
    exitCode: 10,
    httpStatus: 404,
    isRetryable: false,
    meaning: 'the source does not exist',
  },
  CHECKSUM_MISMATCH: {
    exitCode: 11,
    httpStatus: 502,
    isRetryable: true,
    meaning: 'bytes differ from their checksum',
  },
  QUOTA_EXCEEDED: {
    exitCode: 12,
    httpStatus: 507,
    isRetryable: false,
    meaning: 'the limits leave no room',
  },
  DISK_FULL: { exitCode: 13, httpStatus: 507, isRetryable: false, meaning: 'the file system is full' },
  SOURCE_DENIED: { exitCode: 14, httpStatus: 403, isRetryable: false, meaning: 'the source refuses access' },
  SOURCE_UNREACHABLE: {
    exitCode: 15,
    httpStatus: 502,
    isRetryable: true,
    meaning: 'the source does not answer',
  },
  SOURCE_CHANGED: {
    exitCode: 16,
    httpStatus: 409,
    isRetryable: true,
    meaning: 'an object changed during the download',
  },
  SOURCE_EMPTY: { exitCode: 17, httpStatus: 404, isRetryable: false, meaning: 'the source has no objects' },
  KEY_UNSAFE: {
    exitCode: 18,
    httpStatus: 422,
    isRetryable: false,
    meaning: 'a key cannot be a path',
  },
  COPY_IN_USE: { exitCode: 19, httpStatus: 409, isRetryable: false, meaning: 'the copy is leased or locked' },
  COPY_DAMAGED: {
    exitCode: 20,
    httpStatus: 500,
    isRetryable: false,
    meaning: 'files are damaged',
  },
  STAGING_ELSEWHERE: {
    exitCode: 21,
    httpStatus: 409,
    isRetryable: true,
    meaning: 'another process is staging it',
  },
  SOURCE_THROTTLED: {
    exitCode: 22,
    httpStatus: 503,
    isRetryable: true,
    meaning: 'the source limits requests',
  },
  SOURCE_STALLED: { exitCode: 23, httpStatus: 504, isRetryable: true, meaning: 'the source sends no bytes' },
  SOURCE_TRUNCATED: {
    exitCode: 24,
    httpStatus: 502,
    isRetryable: true,
    meaning: 'the source sends too few bytes',
  },
  CACHE_ROOT_INVALID: {
    exitCode: 25,
    httpStatus: 500,
    isRetryable: false,
    meaning: 'the cache folder is unusable',
  },
  DOCTOR_FAILED: {
    exitCode: 26,
    httpStatus: 500,
    isRetryable: false,
    meaning: 'a check of `dsc doctor` failed',
  },
  LEASE_NOT_FOUND: { exitCode: 27, httpStatus: 404, isRetryable: false, meaning: 'no such lease' },
  CONFIRMATION_REQUIRED: { exitCode: 28, httpStatus: 409, isRetryable: false, meaning: '--yes is required' },
  DATASET_IN_USE: {
    exitCode: 29,
    httpStatus: 409,
    isRetryable: false,
    meaning: 'the dataset still has copies',
  },
  VERSION_GONE: {
    exitCode: 30,
    httpStatus: 410,
    isRetryable: false,
    meaning: 'data that a job used is gone',
  },
  SYSTEM_LIMIT: {
    exitCode: 31,
    httpStatus: 507,
    isRetryable: false,
    meaning: 'a limit of this process or machine is reached',
  },
  IO_FAILED: {
    exitCode: 32,
    httpStatus: 500,
    isRetryable: false,
    meaning: 'the kernel refuses a file, or the disk fails',
  },
  PEER_LOST: { exitCode: 40, httpStatus: 502, isRetryable: false, meaning: 'a rank of the exchange is gone' },
  EXCHANGE_MISMATCH: { exitCode: 41, httpStatus: 409, isRetryable: false, meaning: 'ranks disagree' },
  FEED_STATE_MISMATCH: {
    exitCode: 50,
    httpStatus: 409,
    isRetryable: false,
    meaning: 'a state belongs to other data or another order',
  },
  FEED_MEMORY: {
    exitCode: 51,
    httpStatus: 507,
    isRetryable: false,
    meaning: 'the memory of the feed is too small',
  },
  FEED_PROTOCOL: {
    exitCode: 52,
    httpStatus: 400,
    isRetryable: false,
    meaning: 'client and feed do not match',
  },
  FEED_SAMPLE_LOST: {
    exitCode: 53,
    httpStatus: 502,
    isRetryable: false,
    meaning: 'no source has an intact copy of a sample',
  },
  FEED_GONE: {
    exitCode: 54,
    httpStatus: 503,
    isRetryable: true,
    meaning: 'the feed or a storage node is gone',
  },
  RECORD_NOT_EMPTY: {
    exitCode: 60,
    httpStatus: 409,
    isRetryable: false,
    meaning: 'the record to move into is not empty',
  },
  AGENT_UNREACHABLE: {
    exitCode: 61,
    httpStatus: 502,
    isRetryable: true,
    meaning: 'the agent of a node does not answer',
  },
  AGENT_REFUSED: {
    exitCode: 62,
    httpStatus: 401,
    isRetryable: false,
    meaning: 'an agent does not accept the token',
  },
  AGENT_UNSAFE: {
    exitCode: 63,
    httpStatus: 400,
    isRetryable: false,
    meaning: 'an agent would listen without protection',
  },
  NODES_FAILED: { exitCode: 64, httpStatus: 502, isRetryable: true, meaning: 'some of several nodes failed' },
  NODE_TAKEN: {
    exitCode: 65,
    httpStatus: 409,
    isRetryable: false,
    meaning: 'the name of this node belongs to another machine or cache root',
  },
  DEADLINE_PASSED: {
    exitCode: 66,
    httpStatus: 504,
    isRetryable: true,
    meaning: 'it took longer than --deadline',
  },
  NOT_PERMITTED: {
    exitCode: 67,
    httpStatus: 403,
    isRetryable: false,
    meaning: "the node's service does not let this user do that",
  },
  SERVICE_UNREACHABLE: {
    exitCode: 68,
    httpStatus: 503,
    isRetryable: true,
    meaning: "the node's service does not answer at its door",
  },
  TOO_MANY_REQUESTS: {
    exitCode: 69,
    httpStatus: 429,
    isRetryable: true,
    meaning: 'this user asks for too much at once',
  },
  MEMORY_FILE_INVALID: {
    exitCode: 70,
    httpStatus: 400,
    isRetryable: false,
    meaning: 'a memory profile, plan or run report is unusable',
  },
  PLAN_MISMATCH: {
    exitCode: 71,
    httpStatus: 409,
    isRetryable: false,
    meaning: 'a run or device differs from its memory plan',
  },
  HOST_MEMORY_SHORT: {
    exitCode: 72,
    httpStatus: 507,
    isRetryable: false,
    meaning: 'the host has too little memory for it',
  },
  PARAMS_REFUSED: {
    exitCode: 73,
    httpStatus: 409,
    isRetryable: false,
    meaning: 'the parameter server refuses a push',
  },
  PARAMS_UNREACHABLE: {
    exitCode: 74,
    httpStatus: 503,
    isRetryable: true,
    meaning: 'the parameter server does not answer',
  },
  INTERRUPTED: { exitCode: 130, httpStatus: 499, isRetryable: true, meaning: 'stopped by a signal' },
} as const

/** The stable name of a failure; scripts match on it. */
export type FailureCode = keyof typeof FAILURES

/**
 * A failure that is not a bug: shown to the user as message and hint, never with a stack trace or passwords from URLs.
 */
export class DscError extends Error {
  readonly code: FailureCode
  /** One command or setting that would help. */
  readonly hint: string | undefined
  /** The failure's id in the record's history, for `dsc why`; undefined: it is not there. */
  readonly id: string | undefined
  /** Further data for the history, for reports and metrics. */
  readonly facts: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: FailureCode,
    message: string,
    options: {
      hint?: string | undefined
      cause?: unknown
      id?: string | undefined
      facts?: Readonly<Record<string, unknown>> | undefined
    } = {},
  ) {
    super(redactText(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'DscError'
    this.code = code
    this.hint = options.hint === undefined ? undefined : redactText(options.hint)
    this.id = options.id
    this.facts = options.facts
  }

  get exitCode(): number {
    return FAILURES[this.code].exitCode
  }

  get isRetryable(): boolean {
    return FAILURES[this.code].isRetryable
  }
}

/** Whether `error` is a DscError with one of `codes` (any code when none is given). */
export function isDscError(error: unknown, ...codes: readonly FailureCode[]): error is DscError {
  return error instanceof DscError && (codes.length === 0 || codes.includes(error.code))
}

/** A failure from an answer, with a code of this program's table. */
export type KnownFailure = FailureAnswer & { readonly code: FailureCode }

/** A failure in its JSON form everywhere: on stderr, in `--json` output, between agents. */
export function describeFailure({ code, message, hint, id }: DscError): KnownFailure {
  return { code, message, hint, id }
}
