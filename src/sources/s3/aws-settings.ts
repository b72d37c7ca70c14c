import { loadSharedConfigFiles } from '@smithy/core/config'
import { DscError } from '../../failure/dsc-error.js'
import { redactUrl } from '../../failure/redact.js'
import type { Dataset } from '../../model/dataset.js'
import type { Credentials } from '../own-access.js'
import { requireSendable } from '../sendable-secret.js'

type Settings = Readonly<Record<string, string | undefined>>

const AGAIN = 'copy it again, without line ends and typographic characters'

/** The settings of a bucket from environment, profile and dataset, in the AWS CLI's order of precedence. */
export interface AwsSettings {
  /** The effective profile; undefined: `default`, if it exists. */
  readonly profile: string | undefined
  /** Settings of that profile from both files, the one with the keys first. */
  readonly settings: Settings
  readonly region: string | undefined
  /** A custom endpoint instead of AWS's own. */
  readonly endpoint: string | undefined
  /** Whether buckets are folders of the endpoint rather than subdomains. */
  readonly isPathStyle: boolean
  /** Keys from the environment. */
  readonly keys: Credentials | undefined
  /** Whether the environment identifies a pod, and neither keys nor a role of the profile take precedence. */
  readonly isWebIdentity: boolean
}

/**
 * Reads the settings. A profile named by the dataset takes precedence over keys in the environment, like `--profile` of
 * the AWS CLI; AWS_PROFILE does not. Throws CONFIG_INVALID for a profile that does not exist, for half a pair of keys,
 * for an endpoint that is no URL, and for keys that no header can carry.
 * Source: botocore `credentials.py`, `configprovider.py` and `args.py`; with AWS_REGION, as in version 2 of the AWS
 * CLI.
 */
export async function readAwsSettings(dataset: Dataset, environment: Settings): Promise<AwsSettings> {
  const profile = dataset.profile || environment.AWS_DEFAULT_PROFILE || environment.AWS_PROFILE || undefined
  const { configFile, credentialsFile } = await loadSharedConfigFiles()
  const [config, credentials] = [configFile[profile ?? 'default'], credentialsFile[profile ?? 'default']]
  if (profile !== undefined && config === undefined && credentials === undefined && profile !== 'default')
    throw new DscError('CONFIG_INVALID', `the AWS profile ${JSON.stringify(profile)} does not exist`, {
      hint: 'aws configure list-profiles, then set --profile, AWS_PROFILE or profile: of the dataset',
    })
  const settings: Settings = { ...config, ...credentials }
  const services = settings.services === undefined ? undefined : configFile[`services.${settings.services}`]
  const ofProfile = (name: string) => `${name} of the AWS profile ${JSON.stringify(profile ?? 'default')}`
  const endpoint = findEndpoint([
    ['endpoint: of the dataset', dataset.endpoint],
    ...(isEndpointIgnored(environment, settings)
      ? []
      : ([
          ['AWS_ENDPOINT_URL_S3', environment.AWS_ENDPOINT_URL_S3],
          ['AWS_ENDPOINT_URL', environment.AWS_ENDPOINT_URL],
          [`endpoint_url of s3 in [services ${settings.services}]`, services?.['s3.endpoint_url']],
          [ofProfile('endpoint_url'), settings.endpoint_url],
        ] as const)),
  ])
  const style = settings['s3.addressing_style']
  const keys = dataset.profile ? undefined : findKeys(environment)
  const { AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN } = environment
  if (!keys && !dataset.anonymous)
    for (const name of ['aws_access_key_id', 'aws_session_token'])
      requireSendable(settings[name] ?? '', { named: ofProfile(name), hint: AGAIN })
  const hasRole = settings.role_arn !== undefined && settings.web_identity_token_file === undefined
  return {
    profile,
    settings,
    region: dataset.region || environment.AWS_REGION || environment.AWS_DEFAULT_REGION || settings.region,
    endpoint,
    isPathStyle: dataset.pathStyle ?? (endpoint ? style !== 'virtual' : style === 'path'),
    keys,
    isWebIdentity:
      !dataset.profile && !keys && !hasRole && Boolean(AWS_WEB_IDENTITY_TOKEN_FILE && AWS_ROLE_ARN),
  }
}

function isEndpointIgnored(environment: Settings, settings: Settings): boolean {
  const isIgnored =
    environment.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS ?? settings.ignore_configured_endpoint_urls
  return isIgnored?.toLowerCase() === 'true'
}

/** The first of these settings that is set. */
function findEndpoint(places: readonly (readonly [string, string | undefined])[]): string | undefined {
  const [named, found] = places.find(([, value]) => value) ?? []
  if (!found || /^https?:$/.test(URL.parse(found)?.protocol ?? '')) return found
  const shown = JSON.stringify(redactUrl(found).replace(/^.*@/s, '…@'))
  throw new DscError(
    'CONFIG_INVALID',
    `${named}: expected a URL such as http://127.0.0.1:9000, found ${shown}`,
    { hint: 'begin it with https:// (or http:// if it is meant to be unencrypted)' },
  )
}

function findKeys(environment: Settings): Credentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment
  if (!accessKeyId && !secretAccessKey) return undefined
  if (!accessKeyId || !secretAccessKey) {
    const [there, missing] = accessKeyId
      ? ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']
      : ['AWS_SECRET_ACCESS_KEY', 'AWS_ACCESS_KEY_ID']
    throw new DscError('CONFIG_INVALID', `${there} is set, and ${missing} is not`, {
      hint: `set ${missing}, too, or neither`,
    })
  }
  const expiresAtMs = Date.parse(environment.AWS_CREDENTIAL_EXPIRATION ?? '')
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECURITY_TOKEN', 'AWS_SESSION_TOKEN'])
    requireSendable(environment[name] ?? '', { named: name, hint: AGAIN })
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: environment.AWS_SECURITY_TOKEN || environment.AWS_SESSION_TOKEN || undefined,
    ...(Number.isNaN(expiresAtMs) ? {} : { expiresAtMs }),
  }
}
