import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'

/** Access keys, as the AWS credential chain resolves them. */
export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
  /** When they stop working, Unix epoch ms; absent = never. */
  readonly expiresAtMs?: number | undefined
}

/** A request without body. `path` and `query` are percent-encoded already, the query sorted by name. */
export interface UnsignedRequest {
  readonly method: 'GET' | 'HEAD'
  readonly host: string
  readonly path: string
  readonly query: string
  /** `x-amz-…` headers by lower-case name; all of them are signed. */
  readonly headers: Readonly<Record<string, string>>
}

const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Signs requests without body by AWS Signature Version 4 for S3. Keeps the signing key of a day. */
export function createSigner(region: string, service = 's3') {
  let keyFor = ''
  let key: KeyObject | undefined
  let secondMs = -1
  let timestamp = ''

  /** The headers to send: those given, `host` and the signature's. `nowMs` is the Unix epoch in ms. */
  return function sign(
    request: UnsignedRequest,
    credentials: Credentials,
    nowMs: number,
  ): Record<string, string> {
    const second = Math.floor(nowMs / 1000)
    if (second !== secondMs) {
      secondMs = second
      timestamp = new Date(second * 1000).toISOString().replace(/[-:]|\.000/g, '')
    }
    const day = timestamp.slice(0, 8)
    const wantedKey = `${credentials.secretAccessKey}/${day}`
    if (key === undefined || keyFor !== wantedKey) {
      // As a KeyObject it is taken apart once, not for every request.
      key = createSecretKey(deriveKey(credentials.secretAccessKey, day, region, service))
      keyFor = wantedKey
    }
    const headers: Record<string, string> = {
      ...request.headers,
      host: request.host,
      'x-amz-content-sha256': EMPTY_SHA256,
      'x-amz-date': timestamp,
    }
    if (credentials.sessionToken) headers['x-amz-security-token'] = credentials.sessionToken
    const names = Object.keys(headers).sort()
    const signedHeaders = names.join(';')
    let canonical = `${request.method}\n${request.path}\n${request.query}\n`
    for (const name of names) canonical += `${name}:${headers[name]}\n`
    canonical += `\n${signedHeaders}\n${EMPTY_SHA256}`
    const scope = `${day}/${region}/${service}/aws4_request`
    const digest = hash('sha256', canonical, 'hex')
    const signature = createHmac('sha256', key)
      .update(`AWS4-HMAC-SHA256\n${timestamp}\n${scope}\n${digest}`)
      .digest('hex')
    headers.authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`
    return headers
  }
}

/** Percent-encodes a key for a path, `/` kept, as S3 expects it in the canonical request. */
export function encodeKey(key: string): string {
  return encodeURIComponent(key)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%2F/g, '/')
}

function deriveKey(secret: string, day: string, region: string, service: string): Buffer {
  const dayKey = createHmac('sha256', `AWS4${secret}`).update(day).digest()
  const regionKey = createHmac('sha256', dayKey).update(region).digest()
  const serviceKey = createHmac('sha256', regionKey).update(service).digest()
  return createHmac('sha256', serviceKey).update('aws4_request').digest()
}
