import { FAILURES, isDscError } from '../failure/dsc-error.js'

/** What a failed command leaves behind: text for stderr and the exit code of the published table. */
export interface ShownFailure {
  readonly text: string
  readonly exitCode: number
}

/**
 * Turns whatever a command threw into words. A DscError is the user's to solve: message and hint.
 * Anything else is a bug of ours: its stack is shown, with exit code 1.
 */
export function showFailure(error: unknown, isJson: boolean): ShownFailure {
  if (isDscError(error)) {
    const { exitCode } = FAILURES[error.code]
    const text = isJson
      ? JSON.stringify({ error: { code: error.code, message: error.message, hint: error.hint, exitCode } })
      : `dsc: ${error.message}${error.hint ? `\n  try: ${error.hint}` : ''}`
    return { text, exitCode }
  }
  const message = error instanceof Error ? error.message : String(error)
  const stack = error instanceof Error ? (error.stack ?? message) : message
  const text = isJson
    ? JSON.stringify({ error: { code: 'INTERNAL', message, exitCode: 1 } })
    : `dsc: internal error, please report it\n${stack}`
  return { text, exitCode: 1 }
}
