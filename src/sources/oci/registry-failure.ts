import type { SourceFailure } from '../../failure/source-failure.js'
import type { AnswerDialect, RefusedAnswer } from '../answer-handler.js'
import { failAs } from '../refusal.js'
import { WEB_DIALECT } from '../web-failure.js'

/** Interprets the refusals of a registry. */
export function speakRegistry(registry: string): Omit<AnswerDialect, 'readFacts'> {
  return { ...WEB_DIALECT, describeAnswer: (answer) => describeAnswer(answer, registry) }
}

function describeAnswer(answer: RefusedAnswer, registry: string): SourceFailure {
  const { what, status, body } = answer
  const answered = `the registry answered ${[status, readErrors(body)].filter(Boolean).join(': ')}`
  const told = { what, answered, retryAfterMs: undefined }
  if (status === 401 || status === 403) {
    const hint = `docker login ${registry} (or podman, oras login) with an account that may pull it, and check the name: many registries deny access to what does not exist`
    return failAs({ code: 'SOURCE_DENIED', sentence: 'access denied', hint }, told)
  }
  if (status === 404) {
    const hint = 'check the name and the tag, as in oci://ghcr.io/org/model:tag'
    return failAs({ code: 'SOURCE_NOT_FOUND', sentence: 'not in the registry', hint }, told)
  }
  return WEB_DIALECT.describeAnswer(answer)
}

/** `code message` of each error in a registry's JSON. */
function readErrors(body: string): string {
  try {
    const { errors } = JSON.parse(body) as { errors?: readonly { code?: unknown; message?: unknown }[] }
    return (errors ?? [])
      .map(({ code, message }) => `${code} ${message ?? ''}`.trim())
      .join('; ')
      .slice(0, 300)
  } catch {
    return ''
  }
}
