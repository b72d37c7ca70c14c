import { DscError, describeFailure, isDscError } from '../../failure/dsc-error.js'
import { EXIT_CODES } from '../../failure/exit-codes.js'
import type { ErrorAnswer } from '../../failure/failure-answer.js'
import { FAILURES } from '../../failure/failure-table.js'
import { redactText } from '../../failure/redact.js'
import { explainSystemError } from '../../failure/system-failure.js'

/** The outcome of a failed command: text for stderr, and an exit code from the published table. */
interface ShownFailure {
  readonly text: string
  readonly exitCode: number
}

/**
 * Formats anything that a command threw. A DscError is the user's to solve: message and hint. Anything else is a bug of
 * ours: its stack is shown, with exit code 1.
 */
export function showFailure(thrown: unknown, { isJson }: { readonly isJson: boolean }): ShownFailure {
  const error = isLostFolder(thrown) ? explainLostFolder(thrown) : (explainSystemError(thrown) ?? thrown)
  if (isDscError(error)) {
    const { exitCode, isRetryable } = FAILURES[error.code]
    const text = isJson
      ? formatAnswer({ ...describeFailure(error), exitCode, isRetryable })
      : [
          `dsc: ${error.message}`,
          ...(error.hint ? [`  try: ${error.hint}`] : []),
          ...(error.id ? [`  details: dsc why ${error.id}`] : []),
        ].join('\n')
    return { text, exitCode }
  }
  const { exitCode } = EXIT_CODES.internal
  const message = redactText(error instanceof Error ? error.message : String(error))
  const stack = error instanceof Error ? (error.stack ?? message) : message
  const text = isJson
    ? formatAnswer({ code: 'INTERNAL', message, exitCode, isRetryable: false })
    : `dsc: internal error, please report it\n${redactText(stack)}`
  return { text, exitCode }
}

function formatAnswer(error: ErrorAnswer['error']): string {
  const answer: ErrorAnswer = { dsc: 1, error }
  return JSON.stringify(answer)
}

/** Recognizes the error of resolving a path when the working folder was deleted. */
function isLostFolder(error: unknown): boolean {
  const { syscall, code } = (error ?? {}) as NodeJS.ErrnoException
  return syscall === 'uv_cwd' && code === 'ENOENT'
}

function explainLostFolder(cause: unknown): DscError {
  return new DscError('USAGE', 'the folder that dsc was called in is gone', {
    hint: 'cd to one that exists',
    cause,
  })
}
