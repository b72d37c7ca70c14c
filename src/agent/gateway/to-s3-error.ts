import { DscError } from '../../failure/dsc-error.js'
import { S3Error } from './s3-request.js'

/** The refusal for a key that no dataset holds. */
export function undeclared(bucket: string, key: string): S3Error {
  const asked = `s3://${bucket}/${key}`
  return new S3Error(
    { code: 'AccessDenied', status: 403 },
    `${asked} is below no dataset that dsc.yaml declares or the record knows`,
  )
}

/** Translates failures of staging into S3's terms; a bug becomes an InternalError without its stack. */
export function toS3Error(error: unknown): S3Error {
  if (error instanceof S3Error) return error
  if (!(error instanceof DscError))
    return new S3Error(
      { code: 'InternalError', status: 500 },
      error instanceof Error ? error.message : String(error),
    )
  switch (error.code) {
    case 'SOURCE_NOT_FOUND':
    case 'SOURCE_EMPTY':
      return new S3Error({ code: 'NoSuchBucket', status: 404 }, error.message)
    case 'SOURCE_DENIED':
      return new S3Error({ code: 'AccessDenied', status: 403 }, error.message)
    case 'SOURCE_THROTTLED':
      return new S3Error({ code: 'SlowDown', status: 503, retryAfterSeconds: 5 }, error.message)
    default:
      if (error.isRetryable)
        return new S3Error({ code: 'ServiceUnavailable', status: 503, retryAfterSeconds: 5 }, error.message)
      return new S3Error({ code: 'InternalError', status: 500 }, error.message)
  }
}
