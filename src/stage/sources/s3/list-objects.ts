import type { ListObjectsV2CommandOutput, S3Client } from '@aws-sdk/client-s3'
import { DscError } from '../../../failure/dsc-error.js'
import { withRetries } from '../../retry.js'
import type { ListedObject } from '../../source.js'
import { SourceFailure } from '../../source-failure.js'
import {
  describeAnswer,
  describeConnectionError,
  describeMissingCredentials,
  findCode,
} from './s3-failure.js'

const PAGE_TIMEOUT_MS = 60_000

/** Lists a prefix page by page (1,000 keys each) in the byte order of keys, following the bucket to its region. */
export async function* listObjects(options: {
  readonly open: (
    region?: string,
  ) => Promise<{ sdk: typeof import('@aws-sdk/client-s3'); client: S3Client; region: string }>
  readonly bucket: string
  readonly prefix: string
  readonly requesterPays: boolean
  readonly signal?: AbortSignal
}): AsyncGenerator<readonly ListedObject[]> {
  const { bucket, prefix, signal } = options
  let continuation: string | undefined
  do {
    const page = await withRetries(() => listPage(options, continuation), { signal })
    const objects = (page.Contents ?? []).map((entry): ListedObject => {
      const key = page.EncodingType === 'url' ? decodeKey(entry.Key ?? '') : (entry.Key ?? '')
      return {
        key: key.startsWith(prefix) ? key.slice(prefix.length) : key,
        sizeBytes: entry.Size ?? 0,
        etag: entry.ETag?.replace(/^"|"$/g, '') ?? null,
        versionId: null,
        checksum: null,
        modifiedAtMs: entry.LastModified?.getTime() ?? 0,
      }
    })
    if (objects.length > 0) yield objects
    const next = page.IsTruncated ? page.NextContinuationToken : undefined
    if (page.IsTruncated && (next === undefined || next === continuation))
      throw new SourceFailure('SOURCE_TRUNCATED', `s3://${bucket}/${prefix}: the listing does not advance`, {
        isTransient: false,
        hint: 'the server’s listing is broken; check the endpoint',
      })
    continuation = next
  } while (continuation !== undefined)
}

type ListOptions = Parameters<typeof listObjects>[0]

async function listPage(
  options: ListOptions,
  continuation: string | undefined,
): Promise<ListObjectsV2CommandOutput> {
  const { bucket, prefix, signal } = options
  const { sdk, client, region } = await options.open()
  const timeout = AbortSignal.timeout(PAGE_TIMEOUT_MS)
  try {
    return await client.send(
      new sdk.ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix,
        EncodingType: 'url',
        ...(continuation === undefined ? {} : { ContinuationToken: continuation }),
        ...(options.requesterPays ? { RequestPayer: 'requester' as const } : {}),
      }),
      { abortSignal: signal ? AbortSignal.any([signal, timeout]) : timeout },
    )
  } catch (error) {
    if (error instanceof DscError) throw error
    const bucketRegion = findBucketRegion(error)
    if (bucketRegion !== undefined && bucketRegion !== region) {
      await options.open(bucketRegion)
      return listPage(options, continuation)
    }
    throw await describeListFailure(error, options, timeout.aborted, client)
  }
}

async function describeListFailure(error: unknown, options: ListOptions, isLate: boolean, client: S3Client) {
  const what = `s3://${options.bucket}/${options.prefix}`
  const { name, $metadata, $response } = error as SdkFailure
  if ($metadata?.httpStatusCode !== undefined)
    return describeAnswer({
      what,
      status: $metadata.httpStatusCode,
      code: name === 'Error' || name === undefined || name === 'UnknownError' ? '' : name,
      message: error instanceof Error && error.message !== 'UnknownError' ? error.message : '',
      headers: $response?.headers ?? {},
      nowMs: Date.now(),
    })
  const denied = describeMissingCredentials(error, what)
  if (denied !== error) return denied
  const endpoint = await client.config.endpoint?.().catch(() => undefined)
  const origin = endpoint
    ? `${endpoint.protocol}//${endpoint.hostname}:${endpoint.port ?? ''}`
    : 'the S3 endpoint'
  const cause = isLate ? Object.assign(new Error('no answer'), { code: 'UND_ERR_HEADERS_TIMEOUT' }) : error
  if (!isLate && findCode(error) === '' && name !== 'TimeoutError') return error
  return describeConnectionError(cause, {
    what,
    origin,
    receivedBytes: undefined,
    expectedBytes: 0,
    stallTimeoutMs: PAGE_TIMEOUT_MS,
  })
}

interface SdkFailure {
  readonly name?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
  readonly $response?: { readonly headers?: Record<string, string> }
}

function findBucketRegion(error: unknown): string | undefined {
  const { $response, $metadata } = error as SdkFailure
  const status = $metadata?.httpStatusCode ?? 0
  return status === 301 || status === 307 || status === 400
    ? $response?.headers?.['x-amz-bucket-region']
    : undefined
}

function decodeKey(encoded: string): string {
  return decodeURIComponent(encoded.replaceAll('+', ' '))
}
