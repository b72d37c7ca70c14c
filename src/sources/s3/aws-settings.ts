import { loadSharedConfigFiles } from '@smithy/core/config'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import type { Credentials } from './sign-request.js'

type Settings = Readonly<Record<string, string | undefined>>

/** What environment, profile and dataset say of a bucket, in the order in which the AWS CLI asks them. */
export interface AwsSettings {
  /** The profile that counts; undefined: `default`, if there is one. */
  readonly profile: string | undefined
  /** Of that profile, both files together, the one with the keys first. */
  readonly settings: Settings
  readonly region: string | undefined
  /** Other than AWS's own. */
  readonly endpoint: string | undefined
  /** Whether buckets are folders of the endpoint and not names before its. */
  readonly isPathStyle: boolean
  /** Of the environment. */
  readonly keys: Credentials | undefined
  /** The environment says who a pod is, and neither keys nor a role of the profile stand before that. */
  readonly isWebIdentity: boolean
}

/**
 * Reads them. A profile that the dataset names counts as `--profile` of the AWS CLI does: before keys in the
 * environment; AWS_PROFILE does not. Throws CONFIG_INVALID for a profile that does not exist and for half a pair of keys.
 * Source: botocore `credentials.py`, `configprovider.py` and `args.py`; with AWS_REGION, as version 2 of the AWS CLI.
 */
export async function readAwsSettings(dataset: Dataset, environment: Settings): Promise<AwsSettings> {
  const profile = dataset.profile || environment.AWS_DEFAULT_PROFILE || environment.AWS_PROFILE || undefined
  const { configFile, credentialsFile } = await loadSharedConfigFiles()
  const [config, credentials] = [configFile[profile ?? 'default'], credentialsFile[profile ?? 'default']]
  if (profile !== undefined && config === undefined && credentials === undefined && profile !== 'default')
    throw new DscError('CONFIG_INVALID', `the AWS profile ${JSON.stringify(profile)} does not exist`, {
      hint: 'aws configure list-profiles names those there are; check profile: of the dataset, or AWS_PROFILE',
    })
  const settings: Settings = { ...config, ...credentials }
  const services = settings.services === undefined ? undefined : configFile[`services.${settings.services}`]
  const endpoint = dataset.endpoint || findEndpoint(environment, settings, services)
  const style = settings['s3.addressing_style']
  const keys = dataset.profile ? undefined : findKeys(environment)
  const { AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN } = environment
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

function findEndpoint(environment: Settings, settings: Settings, services: Settings | undefined) {
  const isIgnored =
    environment.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS ?? settings.ignore_configured_endpoint_urls
  if (isIgnored?.toLowerCase() === 'true') return undefined
  return (
    environment.AWS_ENDPOINT_URL_S3 ||
    environment.AWS_ENDPOINT_URL ||
    services?.['s3.endpoint_url'] ||
    settings.endpoint_url
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
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: environment.AWS_SECURITY_TOKEN || environment.AWS_SESSION_TOKEN || undefined,
    ...(Number.isNaN(expiresAtMs) ? {} : { expiresAtMs }),
  }
}
