import { DscError, type FailureCode } from './dsc-error.js'

/**
 * A failed attempt on a source. Whether another attempt could help is decided where the failure is born
 * (`isTransient`), not by who catches it.
 */
export class SourceFailure extends DscError {
  readonly isTransient: boolean
  /** The source asked not to be called again for this long, ms. */
  readonly retryAfterMs: number | undefined
  /** Nobody answers at present: a server that restarts, a name that is not served for a while. */
  readonly isAway: boolean

  constructor(
    code: FailureCode,
    message: string,
    options: {
      isTransient: boolean
      hint?: string | undefined
      cause?: unknown
      retryAfterMs?: number | undefined
      isAway?: boolean | undefined
    },
  ) {
    super(code, message, options)
    this.name = 'SourceFailure'
    this.isTransient = options.isTransient
    this.retryAfterMs = options.retryAfterMs
    this.isAway = options.isAway ?? false
  }
}
