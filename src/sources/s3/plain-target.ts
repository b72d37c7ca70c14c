import { loadSharedConfigFiles } from '@smithy/core/config'
import type { Dataset } from '../../model/dataset.js'
import type { S3Target } from './s3-target.js'

type Settings = Readonly<Record<string, string | undefined>>

/** Bucket names that stand for nothing but themselves: no access point, no directory bucket. */
const PLAIN_BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!--[a-z0-9]+-s3)$/
/** Regions that are not made another one of. */
const PLAIN_REGION = /^(?!fips-|aws-)[a-z0-9]+(?:-[a-z0-9]+)*(?<!-fips)$/
/** Settings of a profile that change nothing about where a request goes, or are read here. */
const PLAIN_SETTINGS = new Set([
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'region',
  'ca_bundle',
  'output',
])
/** Variables that change where a request goes. */
const REDIRECTING = ['AWS_USE_FIPS_ENDPOINT', 'AWS_USE_DUALSTACK_ENDPOINT'] as const

/**
 * Where the objects of a bucket are and the keys to it, where the dataset and the AWS configuration say all of it
 * plainly: an endpoint, path style, a region, keys that do not change. Undefined: the AWS SDK has to find out. It would
 * say the same, but takes 150 ms to be loaded and asked, as long as the first thousand small objects.
 */
export async function findPlainTarget(
  dataset: Dataset,
  options: {
    readonly bucket: string
    /** Counts before the configured one. */
    readonly region: string | undefined
    readonly environment: Settings
  },
): Promise<S3Target | undefined> {
  const { bucket, environment } = options
  const origin = findPlainOrigin(dataset)
  if (origin === undefined || !PLAIN_BUCKET.test(bucket)) return undefined
  if (REDIRECTING.some((name) => environment[name])) return undefined
  const profile = dataset.profile || environment.AWS_PROFILE
  const settings = await readProfile(profile ?? 'default')
  if (Object.keys(settings).some((name) => !PLAIN_SETTINGS.has(name))) return undefined
  const region = options.region || dataset.region || environment.AWS_REGION || settings.region
  if (!region || !PLAIN_REGION.test(region)) return undefined
  const target = { origin, basePath: `/${bucket}/`, region }
  if (dataset.anonymous) return { ...target, getCredentials: () => undefined }
  // A profile that is named counts before keys in the environment.
  const credentials = (profile ? undefined : findKeysOf(environment)) ?? findKeysIn(settings)
  return credentials && { ...target, getCredentials: () => credentials }
}

/** The endpoint, if it is nothing but a server and buckets are folders of it. */
function findPlainOrigin({ endpoint, pathStyle }: Dataset): string | undefined {
  if (!endpoint || pathStyle !== true || !URL.canParse(endpoint)) return undefined
  const { origin, pathname, search, hash, username, password } = new URL(endpoint)
  return pathname === '/' && search + hash + username + password === '' ? origin : undefined
}

/** Both files of the AWS configuration together, the one with the keys first. */
async function readProfile(name: string): Promise<Settings> {
  const { configFile, credentialsFile } = await loadSharedConfigFiles()
  return { ...configFile[name], ...credentialsFile[name] }
}

/** Keys that expire are left to the SDK, which may find newer ones. */
function findKeysOf(environment: Settings) {
  if (environment.AWS_CREDENTIAL_EXPIRATION) return undefined
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = environment
  return makeKeys(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN)
}

function findKeysIn({ aws_access_key_id, aws_secret_access_key, aws_session_token }: Settings) {
  return makeKeys(aws_access_key_id, aws_secret_access_key, aws_session_token)
}

function makeKeys(accessKeyId?: string, secretAccessKey?: string, token?: string) {
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: token || undefined }
}
