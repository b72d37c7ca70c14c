import type { SourceFailure } from '../failure/source-failure.js'
import type { AnswerDialect, RefusedAnswer } from './answer-handler.js'
import { describeBrokenRequest, readRetryAfterMs } from './connection-failure.js'
import { failAs, interpretOther, type Refusal } from './refusal.js'

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
  const { what, status } = answer
  const answered = `the server answered ${status}`
  return failAs(interpret(status), { what, answered, retryAfterMs: readRetryAfterMs(answer) })
}

function interpret(status: number): Refusal {
  if (status === 404 || status === 410)
    return {
      code: 'SOURCE_NOT_FOUND',
      sentence: 'there is no such file',
      hint: 'check the URL; if it was listed, dsc prepare <dataset> --refresh',
    }
  if (status === 401 || status === 403)
    return {
      code: 'SOURCE_DENIED',
      sentence: 'access denied',
      hint: 'https:// sources are read without credentials; a signed URL may have run out',
    }
  if (status === 412 || status === 416)
    return {
      code: 'SOURCE_CHANGED',
      sentence: 'the file changed while it was read',
      hint: 'dsc prepare <dataset> --refresh',
    }
  if (status === 429 || status === 503)
    return {
      code: 'SOURCE_THROTTLED',
      sentence: 'the server asks to slow down',
      hint: 'try again later, or lower the concurrency',
      isTransient: true,
      isAway: status === 503,
    }
  return interpretOther(status, { server: 'the server', hint: 'check the URL' })
}
