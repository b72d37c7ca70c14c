import type { Dataset } from '../../model/dataset.js'
import type { AwsSettings } from './aws-settings.js'
import type { S3Target } from './s3-target.js'

type Settings = Readonly<Record<string, string | undefined>>

/** Bucket names without a special meaning: no access point, no directory bucket. */
export const PLAIN_BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!--[a-z0-9]+-s3)$/
/** Regions that the SDK does not rewrite to another one. */
export const PLAIN_REGION = /^(?!fips-|aws-)[a-z0-9]+(?:-[a-z0-9]+)*(?<!-fips)$/
/** Settings of a profile that do not change where a request goes, or are read here or in aws-settings.ts. */
const PLAIN_SETTINGS = new Set([
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'region',
  'ca_bundle',
  'output',
  'services',
  'endpoint_url',
  's3.addressing_style',
])
/** Variables that change where a request goes. */
const REDIRECTING = ['AWS_USE_FIPS_ENDPOINT', 'AWS_USE_DUALSTACK_ENDPOINT'] as const

/**
 * Finds where a bucket's objects are and the keys to it, if the dataset and the AWS configuration state all of it
 * plainly: an endpoint, path style, a region, keys that do not change. Undefined: the AWS SDK has to find out. The SDK
 * would give the same result, but takes 150 ms to load and run, as long as the first thousand small objects.
 */
export async function findPlainTarget(
  dataset: Dataset,
  options: {
    readonly bucket: string
    /** Takes precedence over the configured region. */
    readonly region: string | undefined
    readonly environment: Settings
    readonly aws: AwsSettings
  },
): Promise<S3Target | undefined> {
  const { bucket, environment, aws } = options
  const { settings } = aws
  const origin = findPlainOrigin(aws)
  if (origin === undefined || !PLAIN_BUCKET.test(bucket)) return undefined
  if (REDIRECTING.some((name) => environment[name])) return undefined
  if (Object.keys(settings).some((name) => !PLAIN_SETTINGS.has(name))) return undefined
  const region = options.region || aws.region
  if (!region || !PLAIN_REGION.test(region)) return undefined
  const target = { origin, basePath: `/${bucket}/`, region, service: 's3' }
  if (dataset.anonymous) return { ...target, getCredentials: () => undefined }
  if (aws.isWebIdentity || aws.keys?.expiresAtMs !== undefined) return undefined
  const credentials = aws.keys ?? findKeysIn(settings)
  return credentials && { ...target, getCredentials: () => credentials }
}

/** The endpoint, if it is just a server whose folders are the buckets. */
function findPlainOrigin({ endpoint, isPathStyle }: AwsSettings): string | undefined {
  if (!endpoint || !isPathStyle || !URL.canParse(endpoint)) return undefined
  const { origin, pathname, search, hash, username, password } = new URL(endpoint)
  return pathname === '/' && search + hash + username + password === '' ? origin : undefined
}

function findKeysIn({ aws_access_key_id, aws_secret_access_key, aws_session_token }: Settings) {
  return makeKeys(aws_access_key_id, aws_secret_access_key, aws_session_token)
}

function makeKeys(accessKeyId?: string, secretAccessKey?: string, token?: string) {
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: token || undefined }
}
