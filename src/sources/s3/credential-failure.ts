import { DscError } from '../../failure/dsc-error.js'
import { SourceFailure } from '../../failure/source-failure.js'

/** The fields that all failures of the AWS SDK share; each has a class of its own. */
interface SdkFailure {
  readonly name?: string
  readonly message?: string
  readonly code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
  readonly cause?: unknown
}

const HINT =
  'set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or anonymous: true for public data; aws sts get-caller-identity asks the same'

/**
 * Turns a failure to find AWS credentials or to locate a bucket into a failure of the source: a provider that found
 * nothing, a refusal by STS or SSO, an unreadable token file, a failed process, a violated endpoint rule. All of these
 * have causes outside of this program.
 */
export function describeCredentialFailure(error: unknown, what: string): unknown {
  if (error instanceof DscError) return error
  const failure = (error ?? {}) as SdkFailure
  const reason = reasonOf(failure)
  if (failure.name === 'CredentialsProviderError' || failure.name === 'TokenProviderError')
    return new DscError('SOURCE_DENIED', `${what}: no AWS credentials (${reason})`, {
      cause: error,
      hint: HINT,
    })
  const status = failure.$metadata?.httpStatusCode
  const isNetwork =
    typeof failure.code === 'string' && /^(E(?!RR_)[A-Z]+|HTTP_|ERR_TLS|CERT_|[A-Z_]*CERT)/.test(failure.code)
  if (isNetwork && !isOfFile(failure.code))
    return new SourceFailure(
      'SOURCE_UNREACHABLE',
      `${what}: who gives the AWS credentials cannot be reached (${reason})`,
      {
        isTransient: true,
        isAway: true,
        cause: error,
        hint: 'check the network to STS or SSO from this node, HTTPS_PROXY and AWS_CA_BUNDLE',
      },
    )
  if (status !== undefined && (status >= 500 || status === 429))
    return new SourceFailure(
      'SOURCE_UNREACHABLE',
      `${what}: who gives the AWS credentials failed (${status} ${reason})`,
      {
        isTransient: true,
        cause: error,
        hint: 'try again later: it is STS, SSO or a metadata service that failed, not the bucket',
      },
    )
  if (status !== undefined)
    return new DscError(
      'SOURCE_DENIED',
      `${what}: no AWS credentials: they were refused (${status} ${reason})`,
      {
        cause: error,
        hint: 'check role_arn, the trust policy of the role and the token; aws sts get-caller-identity asks the same',
      },
    )
  if (isOfFile(failure.code))
    return new DscError('SOURCE_DENIED', `${what}: no AWS credentials (${reason})`, {
      cause: error,
      hint: HINT,
    })
  return new DscError('CONFIG_INVALID', `${what}: the AWS configuration cannot be used (${reason})`, {
    cause: error,
    hint: 'check the bucket’s name, region, endpoint and profile; aws s3 ls says what it makes of them',
  })
}

function isOfFile(code: unknown): boolean {
  return ['ENOENT', 'EACCES', 'EISDIR', 'ENOTDIR', 'EPERM', 'ELOOP'].includes(String(code))
}

function reasonOf({ name, message, code }: SdkFailure): string {
  const words = [
    name === 'Error' ? undefined : name,
    message || (typeof code === 'string' ? code : undefined),
  ]
  return words.filter(Boolean).join(': ').slice(0, 500) || 'no reason was given'
}
