import type { FailureCode } from '../failure/failure-table.js'
import { SourceFailure } from '../failure/source-failure.js'

/** Interpretation of an answer: a failure, as a sentence, and what to do. */
export interface Refusal {
  readonly code: FailureCode
  readonly sentence: string
  readonly hint: string
  /** Default: false. */
  readonly isTransient?: boolean
  readonly isAway?: boolean
}

/** The failure shown to the user; `answered`: who answered what, such as `the server answered 503`. */
export function failAs(
  { code, sentence, hint, isTransient, isAway }: Refusal,
  told: { readonly what: string; readonly answered: string; readonly retryAfterMs: number | undefined },
): SourceFailure {
  const { what, answered, retryAfterMs } = told
  return new SourceFailure(code, `${what}: ${sentence} (${answered})`, {
    isTransient,
    isAway,
    hint,
    retryAfterMs,
  })
}

/** Interprets a status that means nothing else: the server failed, or refuses what was asked. */
export function interpretOther(
  status: number,
  { server, hint }: { readonly server: string; readonly hint: string },
): Refusal {
  const isTransient = (status >= 500 && status !== 501) || status === 408
  return {
    code: 'SOURCE_UNREACHABLE',
    sentence: isTransient ? `${server} failed` : `${server} refuses the request`,
    hint: isTransient ? 'try again later' : hint,
    isTransient,
    isAway: status >= 502 && status <= 504,
  }
}
