import { DscError } from './dsc-error.js'
import type { FailureCode } from './failure-table.js'
import { SourceFailure } from './source-failure.js'

/** A failure in transit between threads: structured clones lose the classes and properties of errors. */
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
      /** The operating system's code, such as ENOSPC. */
      readonly code: unknown
    }

/** Packs a failure as data, to send it to the main thread. */
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

/** Unpacks a failure from `packFailure` as an instance of its class. */
export function unpackFailure(failure: WireFailure): Error {
  if (failure.kind === 'other') {
    const { message, stack, code } = failure
    const error = new Error(message)
    if (stack !== undefined) error.stack = stack
    return code === undefined ? error : Object.assign(error, { code })
  }
  const { code, message, hint, isTransient, retryAfterMs } = failure
  return failure.kind === 'source'
    ? new SourceFailure(code, message, { isTransient, hint, retryAfterMs })
    : new DscError(code, message, { hint })
}
