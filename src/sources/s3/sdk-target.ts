import * as sdk from '@aws-sdk/client-s3'
import type { Dataset } from '../../model/dataset.js'
import { keepCredentials } from './keep-credentials.js'
import { describeMissingCredentials } from './s3-failure.js'
import type { S3Target } from './s3-target.js'
import type { Credentials } from './sign-request.js'

/** A target that the AWS SDK found; `close` ends what it holds. */
export interface SdkTarget extends S3Target {
  close(): void
}

const NOBODY = { accessKeyId: 'nobody', secretAccessKey: 'nobody' }
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/** Has the AWS SDK resolve configuration, credentials and endpoint. */
export async function openSdkTarget(
  dataset: Dataset,
  options: {
    readonly bucket: string
    /** Of the source, for messages. */
    readonly what: string
    /** Replaces the configured one once the bucket has told where it lives. */
    readonly region: string | undefined
    readonly ca: string | undefined
  },
): Promise<SdkTarget> {
  const { bucket, what, ca } = options
  const { client, region } = await openClient(dataset, { region: options.region, ca })
  const place = await locate(client, bucket).catch((error: unknown) => {
    client.destroy()
    throw describeMissingCredentials(error, what)
  })
  return {
    ...place,
    region,
    getCredentials: dataset.anonymous
      ? () => undefined
      : keepCredentials(() => resolveCredentials(client, what)),
    close: () => client.destroy(),
  }
}

async function openClient(
  dataset: Dataset,
  from: { readonly region: string | undefined; readonly ca: string | undefined },
): Promise<{ readonly client: sdk.S3Client; readonly region: string }> {
  const { ca } = from
  const region = from.region ?? dataset.region
  const make = (fallbackRegion?: string) =>
    new sdk.S3Client({
      ...((region ?? fallbackRegion) ? { region: (region ?? fallbackRegion)! } : {}),
      ...(dataset.endpoint ? { endpoint: dataset.endpoint } : {}),
      ...(dataset.profile ? { profile: dataset.profile } : {}),
      ...(dataset.pathStyle === undefined ? {} : { forcePathStyle: dataset.pathStyle }),
      ...(dataset.anonymous ? { credentials: NOBODY } : {}), // else the SDK looks for keys everywhere, and fails
      logger: SILENT, // it would write to the console
      maxAttempts: 1, // withRetries decides, the same for listing and reading
      requestHandler: { connectionTimeout: 10_000, ...(ca === undefined ? {} : { httpsAgent: { ca } }) },
    })
  let client = make()
  try {
    return { client, region: await client.config.region() }
  } catch {
    // No region anywhere: servers other than AWS do not care, and AWS tells the right one in its refusal.
    client.destroy()
    client = make('us-east-1')
    return { client, region: 'us-east-1' }
  }
}

/** Lets the SDK build a request and looks where it would go: path style, FIPS, dual stack, access points and all. */
async function locate(client: sdk.S3Client, bucket: string): Promise<Pick<S3Target, 'origin' | 'basePath'>> {
  const probe = 'dsc-probe'
  const command = new sdk.GetObjectCommand({ Bucket: bucket, Key: probe })
  const seen: { protocol: string; hostname: string; port?: number; path: string }[] = []
  command.middlewareStack.add(
    () => async (request) => {
      seen.push((request as { request: (typeof seen)[number] }).request)
      return { response: {}, output: { $metadata: {} } } as never
    },
    { step: 'build', priority: 'low', name: 'dscLocate' },
  )
  await client.send(command)
  const target = seen[0]
  if (!target?.path.endsWith(`/${probe}`)) throw new Error(`the AWS SDK did not resolve s3://${bucket}`)
  const isDefaultPort = target.port === undefined || target.port === (target.protocol === 'https:' ? 443 : 80)
  const host = isDefaultPort ? target.hostname : `${target.hostname}:${target.port}`
  return { origin: `${target.protocol}//${host}`, basePath: target.path.slice(0, -probe.length) }
}

/** The SDK's credentials, which it keeps or finds again itself. */
async function resolveCredentials(client: sdk.S3Client, what: string): Promise<Credentials> {
  try {
    const found = await client.config.credentials()
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = found
    return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs: expiration?.getTime() }
  } catch (error) {
    throw describeMissingCredentials(error, what)
  }
}
