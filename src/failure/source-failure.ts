import { DscError } from './dsc-error.js'
import type { FailureCode } from './failure-table.js'

/**
 * A failed attempt on a source. The code that raises the failure, not the code that catches it, decides whether another
 * attempt could help (`isTransient`).
 */
export class SourceFailure extends DscError {
  readonly isTransient: boolean
  /** The source's minimum wait before the next request, ms. */
  readonly retryAfterMs: number | undefined
  /** The source is temporarily unreachable: a restarting server, or a name without a server. */
  readonly isAway: boolean

  constructor(
    code: FailureCode,
    message: string,
    options: {
      /** Default: false. */
      isTransient?: boolean | undefined
      hint?: string | undefined
      cause?: unknown
      retryAfterMs?: number | undefined
      isAway?: boolean | undefined
    },
  ) {
    super(code, message, options)
    this.name = 'SourceFailure'
    this.isTransient = options.isTransient ?? false
    this.retryAfterMs = options.retryAfterMs
    this.isAway = options.isAway ?? false
  }
}
