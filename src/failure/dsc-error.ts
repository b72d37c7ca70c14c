import type { FailureAnswer } from './failure-answer.js'
import { FAILURES, type FailureCode } from './failure-table.js'
import { redactText } from './redact.js'

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
