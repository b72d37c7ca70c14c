import type { DscError } from '../../failure/dsc-error.js'
import { FAILURES, type FailureCode } from '../../failure/failure-table.js'
import { redactText } from '../../failure/redact.js'
import { explainSystemError } from '../../failure/system-failure.js'

/** The statuses of gRPC that the plugin answers with, by their names in the protocol. */
export type GrpcStatus =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'ABORTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'

/** An answer of the plugin that is no failure of dsc: to ask again, or that a volume is in another state. */
export class CsiRefusal extends Error {
  readonly status: GrpcStatus

  constructor(status: GrpcStatus, message: string) {
    super(message)
    this.name = 'CsiRefusal'
    this.status = status
  }
}

/** Kubernetes cuts off the message of an event after 1024 bytes; kubelet's own words before it take some 150. */
const MAX_MESSAGE_BYTES = 850

/** Describes a failure for kubelet, which makes it an event of the pod: in one line, with the hint. */
export function describeCsiFailure(error: unknown): {
  readonly status: GrpcStatus
  readonly message: string
} {
  if (error instanceof CsiRefusal) return { status: error.status, message: writeInOneLine(error) }
  const failure = explainSystemError(error)
  if (failure === undefined)
    return {
      status: 'INTERNAL',
      message: writeInOneLine({
        message: `a defect of dsc: ${error instanceof Error ? error.message : error}`,
      }),
    }
  return { status: chooseStatus(failure), message: writeInOneLine(failure) }
}

/**
 * | failure                             | status             | kubelet |
 * |-------------------------------------|--------------------|---------|
 * | no room, no disk, no memory         | RESOURCE_EXHAUSTED | retries; runs once there is room |
 * | no such dataset, version or source  | NOT_FOUND          | retries; succeeds once it exists |
 * | the source refuses access           | PERMISSION_DENIED  | retries |
 * | wrong words of the user             | INVALID_ARGUMENT   | retries |
 * | may pass by itself                  | UNAVAILABLE        | retries |
 * | anything else: the node's own fault | INTERNAL           | retries |
 */
const STATUSES: { readonly [code in FailureCode]?: GrpcStatus } = {
  QUOTA_EXCEEDED: 'RESOURCE_EXHAUSTED',
  DISK_FULL: 'RESOURCE_EXHAUSTED',
  SYSTEM_LIMIT: 'RESOURCE_EXHAUSTED',
  DATASET_UNKNOWN: 'NOT_FOUND',
  COPY_NOT_FOUND: 'NOT_FOUND',
  SOURCE_NOT_FOUND: 'NOT_FOUND',
  SOURCE_EMPTY: 'NOT_FOUND',
  VERSION_GONE: 'NOT_FOUND',
  SOURCE_DENIED: 'PERMISSION_DENIED',
  USAGE: 'INVALID_ARGUMENT',
  KEY_UNSAFE: 'INVALID_ARGUMENT',
}

function chooseStatus({ code }: DscError): GrpcStatus {
  return STATUSES[code] ?? (FAILURES[code].isRetryable ? 'UNAVAILABLE' : 'INTERNAL')
}

function writeInOneLine({ message, hint }: { readonly message: string; readonly hint?: string | undefined }) {
  const line = message
    .split('\n')
    .map((each) => each.trim())
    .join('; ')
  return cutOff(redactText(hint === undefined ? line : `${line}; try: ${hint}`))
}

function cutOff(text: string): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_MESSAGE_BYTES) return text
  const kept = bytes.subarray(0, MAX_MESSAGE_BYTES - Buffer.byteLength('…'))
  return `${new TextDecoder().decode(kept, { stream: true })}…` // `stream` leaves half a character out
}
