import { SourceFailure } from '../../failure/source-failure.js'
import type { AnswerDialect, RefusedAnswer } from '../answer-handler.js'
import { WEB_DIALECT } from '../web-failure.js'

/** Interprets the refusals of a registry. */
export function speakRegistry(registry: string): Omit<AnswerDialect, 'readFacts'> {
  return { ...WEB_DIALECT, describeAnswer: (answer) => describeAnswer(answer, registry) }
}

function describeAnswer(answer: RefusedAnswer, registry: string): SourceFailure {
  const { what, status, body } = answer
  const said = [status, readErrors(body)].filter(Boolean).join(': ')
  if (status === 401 || status === 403)
    return new SourceFailure('SOURCE_DENIED', `${what}: access denied (the registry answered ${said})`, {
      isTransient: false,
      hint: `docker login ${registry} (or podman, oras login) with an account that may pull it; registries also hide so what does not exist`,
    })
  if (status === 404)
    return new SourceFailure('SOURCE_NOT_FOUND', `${what}: not in the registry (it answered ${said})`, {
      isTransient: false,
      hint: 'check the name and the tag, as in oci://ghcr.io/org/model:tag',
    })
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
