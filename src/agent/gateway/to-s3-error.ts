import { DscError } from '../../failure/dsc-error.js'
import { type HubExchange, HubRefusal } from './hub/answer-hub.js'
import { S3Error } from './s3-request.js'

/** The refusal for a key that no dataset holds. */
export function undeclared(bucket: string, key: string): S3Error {
  const asked = `s3://${bucket}/${key}`
  return new S3Error(
    'AccessDenied',
    `${asked} is below no dataset that dsc.yaml declares or the record knows`,
  )
}

/** Translates failures of staging into S3's terms; a bug becomes an InternalError without its stack. */
export function toS3Error(error: unknown): S3Error {
  if (error instanceof S3Error) return error
  if (!(error instanceof DscError))
    return new S3Error('InternalError', error instanceof Error ? error.message : String(error))
  switch (error.code) {
    case 'SOURCE_NOT_FOUND':
    case 'SOURCE_EMPTY':
      return new S3Error('NoSuchBucket', error.message)
    case 'SOURCE_DENIED':
      return new S3Error('AccessDenied', error.message)
    case 'SOURCE_THROTTLED':
      return new S3Error('SlowDown', error.message)
    default:
      if (error.isRetryable) return new S3Error('ServiceUnavailable', error.message)
      return new S3Error('InternalError', error.message)
  }
}

/** Translates a failure into a hub's terms. */
export function toHubRefusal(error: unknown, { response }: Pick<HubExchange, 'response'>): HubRefusal {
  if (error instanceof HubRefusal) return error
  const { status, code, message, retryAfterSeconds } = toS3Error(error)
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds)
  return new HubRefusal(status, code === 'NoSuchKey' ? 'EntryNotFound' : '', message)
}
