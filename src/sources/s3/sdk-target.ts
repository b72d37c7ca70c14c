import * as sdk from '@aws-sdk/client-s3'
import { fromTokenFile } from '@aws-sdk/credential-provider-web-identity'
import { atEndNow } from '../../failure/closers.js'
import { ProxyAgent } from '../../http/proxy-agent.js'
import type { Dataset } from '../../model/dataset.js'
import type { Credentials } from '../own-access.js'
import type { AwsSettings } from './aws-settings.js'
import { describeCredentialFailure } from './credential-failure.js'
import { keepCredentials } from './keep-credentials.js'
import { type ProcessKeys, runCredentialProcess } from './process-credentials.js'
import type { S3Target } from './s3-target.js'
import { EVERYWHERE } from './sign-request.js'

/** A target found by the AWS SDK; `close` releases its resources. */
export interface SdkTarget extends S3Target {
  close(): void
}

const NOBODY = { accessKeyId: 'nobody', secretAccessKey: 'nobody' }
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }
/** A service whose signatures use session keys, obtained with the caller's own keys. */
const EXPRESS = 's3express'

/** Lets the AWS SDK resolve credentials and the destination of requests. */
export async function openSdkTarget(
  dataset: Dataset,
  options: {
    readonly bucket: string
    /** The source, for messages. */
    readonly what: string
    /** Replaces the configured region once the bucket has named its own. */
    readonly region: string | undefined
    readonly ca: string | undefined
    readonly aws: AwsSettings
  },
): Promise<SdkTarget> {
  const { bucket, what } = options
  // Servers other than AWS ignore the region, and AWS names the right one in its refusal.
  const region = options.region || options.aws.region || 'us-east-1'
  const client = openClient(dataset, { ...options, region })
  const place = await locate(client, bucket).catch((error: unknown) => {
    client.destroy()
    throw describeCredentialFailure(error, what)
  })
  const isExpress = place.service === EXPRESS
  const run = findProcess(dataset, options.aws)
  const find = async () => {
    // The SDK would run a process twice whose keys last less than 5 minutes.
    const own = await (run ?? client.config.credentials)()
    return isExpress
      ? await client.config.s3ExpressIdentityProvider.getS3ExpressIdentity(own, { Bucket: bucket })
      : own
  }
  return {
    ...place,
    region: place.region ?? region,
    getCredentials: dataset.anonymous
      ? () => undefined
      : keepCredentials(() => resolveCredentials(find, what)),
    close: () => client.destroy(),
  }
}

/** This user's keys as the AWS SDK finds them. Rejects with SOURCE_DENIED without any. */
export async function findSdkKeys(dataset: Dataset, aws: AwsSettings): Promise<Credentials> {
  const run = findProcess(dataset, aws)
  if (run) return resolveCredentials(run, dataset.source)
  const client = openClient(dataset, { region: aws.region || 'us-east-1', ca: undefined, aws })
  using _ = atEndNow(() => client.destroy())
  return await resolveCredentials(() => client.config.credentials(), dataset.source)
}

function openClient(
  dataset: Dataset,
  options: { readonly region: string; readonly ca: string | undefined; readonly aws: AwsSettings },
): sdk.S3Client {
  const { region, ca, aws } = options
  const { endpoint, profile, isPathStyle, isWebIdentity, keys } = aws
  const agent = { keepAlive: true, ca }
  const requestHandler = { connectionTimeout: 10_000, httpsAgent: new ProxyAgent(agent, process.env) }
  // For unsigned requests the SDK would otherwise look for keys everywhere, and fail.
  const known = dataset.anonymous ? NOBODY : keys && describeKeys(keys)
  const identity = { userAgentAppId: 'dsc' } // handed on to whom it asks for credentials
  const provider =
    known ??
    (isWebIdentity
      ? fromTokenFile({ clientConfig: { region, requestHandler, ...identity } })
      : findProcess(dataset, aws))
  return new sdk.S3Client({
    region,
    ...identity,
    ...(endpoint ? { endpoint } : {}),
    ...(profile ? { profile } : {}),
    ...(provider ? { credentials: provider } : {}),
    forcePathStyle: isPathStyle,
    useArnRegion: true,
    logger: SILENT, // it would write to the console
    maxAttempts: 1, // withRetries decides, the same for listing and reading
    requestHandler,
  })
}

/** Settings of a profile that give credentials before its `credential_process`. */
const BEFORE_PROCESS = [
  'role_arn',
  'aws_access_key_id',
  'web_identity_token_file',
  'sso_session',
  'sso_start_url',
]

/** Runs the `credential_process` of the profile if the keys come from there; undefined: the SDK finds them. */
function findProcess(dataset: Dataset, aws: AwsSettings) {
  const { settings, keys, isWebIdentity, profile = 'default' } = aws
  const { credential_process: command } = settings
  if (!command || dataset.anonymous || keys || isWebIdentity) return undefined
  if (BEFORE_PROCESS.some((name) => settings[name])) return undefined
  return () => runCredentialProcess(command, { what: dataset.source, profile })
}

function describeKeys({ accessKeyId, secretAccessKey, sessionToken, expiresAtMs }: Credentials) {
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken ? { sessionToken } : {}),
    ...(expiresAtMs === undefined ? {} : { expiration: new Date(expiresAtMs) }),
  }
}

/** Destination of a request according to the SDK: the server and path, and the service it is signed for. */
interface Place extends Pick<S3Target, 'origin' | 'basePath' | 'service'> {
  /** Undefined: the configured one. */
  readonly region: string | undefined
}

/** Lets the SDK build a request and reads its destination: path style, FIPS, dual stack, access points and all. */
async function locate(client: sdk.S3Client, bucket: string): Promise<Place> {
  const probe = 'dsc-probe'
  const command = new sdk.GetObjectCommand({ Bucket: bucket, Key: probe })
  const seen: { request: SeenRequest; scheme: SeenScheme | undefined }[] = []
  command.middlewareStack.add(
    (_, context) => async (handed) => {
      const { request } = handed as { request: SeenRequest }
      const { endpointV2 } = context as {
        endpointV2?: { properties?: { authSchemes?: readonly SeenScheme[] } }
      }
      seen.push({ request, scheme: endpointV2?.properties?.authSchemes?.[0] })
      return { response: {}, output: { $metadata: {} } } as never
    },
    { step: 'build', priority: 'low', name: 'dscLocate' },
  )
  await client.send(command)
  const { request, scheme } = seen[0] ?? {}
  if (!request?.path.endsWith(`/${probe}`)) throw new Error(`the AWS SDK did not resolve s3://${bucket}`)
  const isDefaultPort =
    request.port === undefined || request.port === (request.protocol === 'https:' ? 443 : 80)
  const host = isDefaultPort ? request.hostname : `${request.hostname}:${request.port}`
  return {
    origin: `${request.protocol}//${host}`,
    basePath: request.path.slice(0, -probe.length),
    service: scheme?.signingName ?? 's3',
    region: scheme?.name === 'sigv4a' ? EVERYWHERE : scheme?.signingRegion, // a multi-region access point
  }
}

interface SeenRequest {
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly path: string
}

interface SeenScheme {
  readonly name?: string
  readonly signingName?: string
  readonly signingRegion?: string
}

/** The SDK's credentials, which it caches or refreshes itself. */
async function resolveCredentials(find: () => Promise<ProcessKeys>, what: string): Promise<Credentials> {
  try {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await find()
    return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs: expiration?.getTime() }
  } catch (error) {
    throw describeCredentialFailure(error, what)
  }
}
