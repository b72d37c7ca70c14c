import type { S3Client } from '@aws-sdk/client-s3'
import { findProxy } from '../../../http/find-proxy.js'
import type { Dataset } from '../../../model/dataset.js'
import { parseSourceUrl } from '../../../model/source-url.js'
import type { Source } from '../source.js'
import { keepCredentials } from './keep-credentials.js'
import { listObjects } from './list-objects.js'
import { PageLister } from './list-page.js'
import { readAuthorities } from './read-authorities.js'
import { describeMissingCredentials } from './s3-failure.js'
import { S3Fetcher, type S3Location } from './s3-fetcher.js'
import type { Credentials } from './sign-request.js'

type Sdk = typeof import('@aws-sdk/client-s3')

interface Opened {
  readonly sdk: Sdk
  readonly client: S3Client
  readonly region: string
  readonly ca: string | undefined
}

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/**
 * Opens the S3 side of a dataset. The AWS SDK, loaded on first use, resolves configuration, credentials and
 * endpoint; objects are listed and read without it.
 */
export function openS3Source(dataset: Dataset): Source {
  const url = parseSourceUrl(dataset.source)
  if (url.scheme !== 's3') throw new RangeError(`expected an s3:// source, found ${dataset.source}`)
  const { bucket, prefix } = url
  const what = `s3://${bucket}/${prefix}`
  let opening: Promise<Opened> | undefined

  /** `region` replaces the configured one once the bucket has told where it lives. */
  function open(region?: string): Promise<Opened> {
    if (opening === undefined || region !== undefined) opening = openClient(dataset, region)
    return opening
  }

  async function access(newRegion?: string) {
    const opened = await open(newRegion)
    const location = await locate({ ...opened, bucket, prefix, dataset }).catch((error: unknown) => {
      throw describeMissingCredentials(error, what)
    })
    return {
      location,
      getCredentials: dataset.anonymous
        ? () => undefined
        : keepCredentials(() => resolveCredentials(opened.client, what)),
    }
  }

  const lister = new PageLister(access)
  return {
    url: what,
    list: (options) =>
      listObjects({ ...options, listPage: (...asked) => lister.listPage(...asked), url: what }),
    async openFetcher({ connections }) {
      const { location, getCredentials } = await access()
      return new S3Fetcher(location, getCredentials, connections)
    },
    async describeAccess() {
      const { location, getCredentials } = await access()
      return { scheme: 's3', location, answer: getCredentials }
    },
    async close() {
      await lister.close()
      if (opening) (await opening.catch(() => undefined))?.client.destroy()
      opening = undefined
    },
  }
}

async function openClient(dataset: Dataset, bucketRegion: string | undefined): Promise<Opened> {
  const sdk = await import('@aws-sdk/client-s3')
  const ca = await readAuthorities(dataset.profile)
  const region = bucketRegion ?? dataset.region
  const make = (fallbackRegion?: string) =>
    new sdk.S3Client({
      ...((region ?? fallbackRegion) ? { region: (region ?? fallbackRegion)! } : {}),
      ...(dataset.endpoint ? { endpoint: dataset.endpoint } : {}),
      ...(dataset.profile ? { profile: dataset.profile } : {}),
      ...(dataset.pathStyle === undefined ? {} : { forcePathStyle: dataset.pathStyle }),
      // Anonymous: hand the request on unsigned.
      ...(dataset.anonymous ? { signer: { sign: async (request) => request } } : {}),
      logger: SILENT, // it would write to the console
      maxAttempts: 1, // withRetries decides, the same for listing and reading
      requestHandler: { connectionTimeout: 10_000, ...(ca === undefined ? {} : { httpsAgent: { ca } }) },
    })
  let client = make()
  try {
    return { sdk, client, region: await client.config.region(), ca }
  } catch {
    // No region anywhere: servers other than AWS do not care, and AWS tells the right one in its refusal.
    client.destroy()
    client = make('us-east-1')
    return { sdk, client, region: 'us-east-1', ca }
  }
}

/** Lets the SDK build a request and looks where it would go: path style, FIPS, dual stack, access points and all. */
async function locate(
  options: Opened & { readonly bucket: string; readonly prefix: string; readonly dataset: Dataset },
): Promise<S3Location> {
  const { sdk, client, region, ca, bucket, prefix, dataset } = options
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
  return {
    origin: `${target.protocol}//${host}`,
    host,
    ca,
    proxy: findProxy(`${target.protocol}//${host}`, process.env),
    basePath: target.path.slice(0, -probe.length),
    region,
    bucket,
    prefix,
    requesterPays: dataset.requesterPays ?? false,
    isAnonymous: dataset.anonymous ?? false,
  }
}

/** The SDK's credentials, which it keeps or finds again itself. */
async function resolveCredentials(client: S3Client, what: string): Promise<Credentials> {
  try {
    const found = await client.config.credentials()
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = found
    return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs: expiration?.getTime() }
  } catch (error) {
    throw describeMissingCredentials(error, what)
  }
}
