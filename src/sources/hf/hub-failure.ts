import type { SourceFailure } from '../../failure/source-failure.js'
import type { Headers } from '../../http/answer-listener.js'
import type { AnswerDialect, RefusedAnswer } from '../answer-handler.js'
import { describeBrokenRequest, readRetryAfterMs } from '../connection-failure.js'
import { failAs, interpretOther, type Refusal } from '../refusal.js'

/** Interprets a hub's refusals, for a repository whose page is `page`. */
export function speakHub(page: string): Omit<AnswerDialect, 'readFacts'> {
  return {
    describeAnswer: (answer) => describeAnswer(answer, page),
    describeConnectionError: (error, request) =>
      describeBrokenRequest(error, {
        ...request,
        hints: {
          authority: 'set SSL_CERT_FILE to a PEM file with that authority’s certificate',
          name: 'check the host name of `endpoint:` in dsc.yaml (or HF_ENDPOINT)',
        },
      }),
  }
}

function describeAnswer(answer: RefusedAnswer, page: string): SourceFailure {
  const { what, status, headers } = answer
  const told = headers['x-error-message'] ?? ''
  const word = headers['x-error-code'] ?? ''
  const found = [`${status} ${word}`.trim(), told.slice(0, 300)].filter(Boolean).join(': ')
  const retryAfterMs = readRetryAfterMs(answer) ?? readRateLimitMs(headers)
  return failAs(interpret(status, word, { page, told }), {
    what,
    answered: `the hub answered ${found}`,
    retryAfterMs,
  })
}

/** The wording follows huggingface_hub's `hf_raise_for_status`. */
function interpret(
  status: number,
  word: string,
  { page, told }: { readonly page: string; readonly told: string },
): Refusal {
  if (word === 'GatedRepo')
    return {
      code: 'SOURCE_DENIED',
      sentence: 'the repository is gated',
      hint: `accept its terms at ${page}, then set HF_TOKEN to your token`,
    }
  if (word === 'RevisionNotFound')
    return {
      code: 'SOURCE_NOT_FOUND',
      sentence: 'the repository has no such revision',
      hint: `see its branches and tags at ${page}`,
    }
  if (word === 'EntryNotFound')
    return {
      code: 'SOURCE_NOT_FOUND',
      sentence: 'the repository has no such file or folder at that revision',
      hint: `see its files at ${page}`,
    }
  if (status === 401 && word === '' && /invalid.*(credential|token|password)/i.test(told))
    return {
      code: 'SOURCE_DENIED',
      sentence: 'the token is not accepted',
      hint: 'hf auth login anew, or unset HF_TOKEN: what is public needs none, but no wrong one either',
    }
  // The hub hides repositories the caller may not see: without a token it answers 401 for names that do not exist.
  if (word === 'RepoNotFound' || status === 401 || (status === 404 && word === ''))
    return {
      code: status === 401 && word !== 'RepoNotFound' ? 'SOURCE_DENIED' : 'SOURCE_NOT_FOUND',
      sentence: 'repository not found, or your token cannot read it',
      hint: 'check its name (a dataset is hf://datasets/org/name), and set HF_TOKEN if it is private',
    }
  return interpretStatus(status)
}

function interpretStatus(status: number): Refusal {
  if (status === 429 || status === 503)
    return {
      code: 'SOURCE_THROTTLED',
      sentence: 'the hub limits requests',
      hint: 'retry later, or set HF_TOKEN for a higher limit',
      isTransient: true,
      isAway: status === 503,
    }
  if (status === 403)
    return {
      code: 'SOURCE_DENIED',
      sentence: 'access denied',
      hint: 'check that the token (HF_TOKEN) may read this repository',
    }
  if (status === 416)
    return {
      code: 'SOURCE_CHANGED',
      sentence: 'the file is shorter than it was listed',
      hint: 'dsc prepare <dataset> --refresh',
    }
  return interpretOther(status, {
    server: 'the hub',
    hint: 'check `endpoint:` of the dataset (or HF_ENDPOINT)',
  })
}

/**
 * `ratelimit: "api";r=0;t=55`: requests left, and seconds until the limit resets
 * (draft-ietf-httpapi-ratelimit-headers).
 */
function readRateLimitMs({ ratelimit }: Headers): number | undefined {
  const seconds = /;\s*t=(\d+)/.exec(ratelimit ?? '')?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
