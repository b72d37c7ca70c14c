import type { Headers } from '../../http/http-connection.js'
import { HttpPool } from '../../http/http-pool.js'
import { countUploadParts } from '../../plan/plan-parts.js'
import type { Fetcher, InspectRequest } from '../../source.js'
import { AnswerHandler, type AnswerOptions, readFacts } from './answer-handler.js'
import { type Credentials, createSigner, encodeKey } from './sign-request.js'

/** Where the objects of a dataset lie, resolved once by the AWS SDK. Plain data, so that a worker can have it. */
export interface S3Location {
  /** `https://host:port`. */
  readonly origin: string
  readonly host: string
  /** Certificates that the server's own must be signed by, PEM; undefined = those that Node.js trusts. */
  readonly ca: string | undefined
  /** Path before the key, percent-encoded, ends in `/`. */
  readonly basePath: string
  readonly region: string
  readonly bucket: string
  readonly prefix: string
  readonly requesterPays: boolean
}

/** Reads objects with signed requests over a pool of keep-alive connections. Credentials undefined = anonymous. */
export function openS3Fetcher(
  location: S3Location,
  getCredentials: () => Promise<Credentials> | Credentials | undefined,
  options: { readonly connections: number },
): Fetcher {
  const pool = new HttpPool(location.origin, { ...options, ca: location.ca })
  const sign = createSigner(location.region)

  async function send(request: {
    readonly method: 'GET' | 'HEAD'
    readonly key: string
    readonly query: string
    readonly amzHeaders: Record<string, string>
    readonly plainHeaders: Record<string, string>
    readonly answerTo: Omit<AnswerOptions, 'what' | 'origin'>
  }): Promise<Headers> {
    const path = location.basePath + encodeKey(location.prefix + request.key)
    if (location.requesterPays) request.amzHeaders['x-amz-request-payer'] = 'requester'
    const pending = getCredentials()
    const credentials = pending instanceof Promise ? await pending : pending
    const unsigned = { ...request, path, host: location.host, headers: request.amzHeaders }
    const headers = credentials
      ? sign(unsigned, credentials, Date.now())
      : { ...request.amzHeaders, host: location.host }
    const { answerTo } = request
    return new Promise((resolve, reject) => {
      const what = `s3://${location.bucket}/${location.prefix}${request.key}`
      const handler = new AnswerHandler({ ...answerTo, what, origin: location.origin }, resolve, reject)
      handler.begin((listener) =>
        pool.send(
          {
            method: request.method,
            path: request.query === '' ? path : `${path}?${request.query}`,
            headers: { ...headers, ...request.plainHeaders },
            stallTimeoutMs: answerTo.stallTimeoutMs,
          },
          listener,
        ),
      )
    })
  }

  return {
    async fetch(request) {
      const isWhole = request.offset === 0 && request.length === request.sizeBytes
      const plainHeaders: Record<string, string> = { 'accept-encoding': 'identity' }
      if (request.etag !== null) plainHeaders['if-match'] = `"${request.etag}"`
      if (!isWhole) plainHeaders.range = `bytes=${request.offset}-${request.offset + request.length - 1}`
      await send({
        method: 'GET',
        key: request.key,
        query: versionQuery(request),
        // With a range, servers answer with the checksum of an upload part, which nothing here could use.
        amzHeaders: isWhole ? { 'x-amz-checksum-mode': 'ENABLED' } : {},
        plainHeaders,
        answerTo: { ...request, isWhole },
      })
    },
    async inspect(request) {
      const answerTo = { ...request, offset: 0, length: 0, isWhole: true, sink: () => 0 }
      const headers = await send({
        method: 'HEAD',
        key: request.key,
        query: versionQuery(request),
        amzHeaders: { 'x-amz-checksum-mode': 'ENABLED' },
        plainHeaders: request.etag === null ? {} : { 'if-match': `"${request.etag}"` },
        answerTo,
      })
      const uploadParts = countUploadParts(request.etag)
      let uploadPartBytes: number | null = null
      if (uploadParts > 1) {
        const query = ['partNumber=1', versionQuery(request)].filter(Boolean).join('&')
        const first = await send({
          method: 'HEAD',
          key: request.key,
          query,
          amzHeaders: {},
          plainHeaders: {},
          answerTo: { ...answerTo, isPart: true },
        })
        const bytes = Number(first['content-length'])
        // Servers that do not know part numbers answer with the whole object.
        if (bytes > 0 && Math.ceil(request.sizeBytes / bytes) === uploadParts) uploadPartBytes = bytes
      }
      return readFacts(headers, uploadPartBytes)
    },
    close: async () => pool.close(),
  }
}

function versionQuery(request: InspectRequest): string {
  return request.versionId === null ? '' : `versionId=${encodeURIComponent(request.versionId)}`
}
