import type { FailureCode } from '../failure/failure-table.js'
import { SourceFailure } from '../failure/source-failure.js'
import type { AnswerDialect, RefusedAnswer } from './answer-handler.js'
import { describeBrokenRequest, readRetryAfterMs } from './connection-failure.js'

interface Meaning {
  readonly code: FailureCode
  readonly sentence: string
  readonly hint: string
  readonly isTransient: boolean
  readonly isAway?: boolean
}

/** Interprets a web server's refusals. */
export const WEB_DIALECT: Omit<AnswerDialect, 'readFacts'> = {
  describeAnswer,
  describeConnectionError: (error, request) =>
    describeBrokenRequest(error, {
      ...request,
      hints: {
        authority: 'set SSL_CERT_FILE to a PEM file with that authority’s certificate',
        name: 'check the host name of the source',
        length: 'name the dataset (dsc dataset add): its list may then have 256 MiB',
      },
    }),
}

function describeAnswer(answer: RefusedAnswer): SourceFailure {
  const { code, sentence, hint, isTransient, isAway } = interpret(answer.status)
  return new SourceFailure(code, `${answer.what}: ${sentence} (the server answered ${answer.status})`, {
    isTransient,
    isAway,
    hint,
    retryAfterMs: readRetryAfterMs(answer),
  })
}

function interpret(status: number): Meaning {
  if (status === 404 || status === 410)
    return {
      code: 'SOURCE_NOT_FOUND',
      sentence: 'there is no such file',
      hint: 'check the URL; if it was listed, dsc prepare <dataset> --refresh',
      isTransient: false,
    }
  if (status === 401 || status === 403)
    return {
      code: 'SOURCE_DENIED',
      sentence: 'access denied',
      hint: 'https:// sources are read without credentials; a signed URL may have run out',
      isTransient: false,
    }
  if (status === 412 || status === 416)
    return {
      code: 'SOURCE_CHANGED',
      sentence: 'the file changed while it was read',
      hint: 'dsc prepare <dataset> --refresh',
      isTransient: false,
    }
  if (status === 429 || status === 503)
    return {
      code: 'SOURCE_THROTTLED',
      sentence: 'the server asks to slow down',
      hint: 'try again later, or lower the concurrency',
      isTransient: true,
      isAway: status === 503,
    }
  const isTransient = (status >= 500 && status !== 501) || status === 408
  return {
    code: 'SOURCE_UNREACHABLE',
    sentence: isTransient ? 'the server failed' : 'the server refuses the request',
    hint: isTransient ? 'try again later' : 'check the URL',
    isTransient,
    isAway: status >= 502 && status <= 504,
  }
}
