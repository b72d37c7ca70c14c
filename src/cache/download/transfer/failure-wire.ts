import { DscError, type FailureCode } from '../../../failure/dsc-error.js'
import { SourceFailure } from '../../../failure/source-failure.js'

/** A failure as it goes from thread to thread: structured clones lose classes and properties of errors. */
export type WireFailure =
  | {
      readonly kind: 'source' | 'dsc'
      readonly code: FailureCode
      readonly message: string
      readonly hint: string | undefined
      readonly isTransient: boolean
      readonly retryAfterMs: number | undefined
    }
  | {
      readonly kind: 'other'
      readonly message: string
      readonly stack: string | undefined
      /** Of the operating system, for example ENOSPC. */
      readonly code: unknown
    }

/** A failure as data, to be sent from a thread to the main one. */
export function packFailure(error: unknown): WireFailure {
  if (error instanceof DscError) {
    const { code, message, hint } = error
    const source = error instanceof SourceFailure ? error : undefined
    return {
      kind: source ? 'source' : 'dsc',
      code,
      message,
      hint,
      isTransient: source?.isTransient ?? false,
      retryAfterMs: source?.retryAfterMs,
    }
  }
  if (!(error instanceof Error))
    return { kind: 'other', message: String(error), stack: undefined, code: undefined }
  const { message, stack } = error
  return { kind: 'other', message, stack, code: (error as { readonly code?: unknown }).code }
}

/** The failure that `packFailure` was given, as an instance of its class. */
export function unpackFailure(failure: WireFailure): Error {
  if (failure.kind === 'other') {
    const { message, stack, code } = failure
    return Object.assign(new Error(message), {
      ...(stack ? { stack } : {}),
      ...(code === undefined ? {} : { code }),
    })
  }
  const { code, message, hint, isTransient, retryAfterMs } = failure
  return failure.kind === 'source'
    ? new SourceFailure(code, message, { isTransient, hint, retryAfterMs })
    : new DscError(code, message, { hint })
}
