import { isIP } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import type { OwnAccess } from '../own-access.js'
import { keepCredentials } from './keep-credentials.js'
import { PLAIN_BUCKET, PLAIN_REGION } from './plain-target.js'
import type { S3Target } from './s3-target.js'

/** Access of one user to S3. */
export type OwnS3Access = Extract<OwnAccess, { readonly scheme: 's3' }>

/**
 * The target of a bucket that is read with one user's keys. Nothing of this process counts here: neither its
 * environment nor its AWS files, which are the service's. `region` replaces the user's once the bucket has named its
 * own. Throws CONFIG_INVALID for what only the AWS SDK could locate, such as access points.
 */
export function createOwnTarget(
  { endpoint, region: usersRegion, isPathStyle, getKeys }: OwnS3Access,
  { bucket, region: named }: { readonly bucket: string; readonly region: string | undefined },
): S3Target {
  const region = named || usersRegion || 'us-east-1'
  for (const [what, text, pattern] of [
    ['bucket', bucket, PLAIN_BUCKET],
    ['region', region, PLAIN_REGION],
  ] as const)
    if (!pattern.test(text))
      throw new DscError(
        'CONFIG_INVALID',
        `a service reads plain buckets with a user's credentials, not the ${what} ${JSON.stringify(text)}`,
        { hint: 'ask root to declare it in the dsc.yaml of the service (datasets:)' },
      )
  const { protocol, host, hostname, pathname } = new URL(endpoint ?? originOfAws(region))
  const folder = pathname.replace(/\/*$/, '/')
  // A dot in a bucket's name would be one too many for the server's certificate, and an address has no hosts below it.
  const isInPath =
    endpoint === undefined
      ? bucket.includes('.')
      : isPathStyle || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  const place = isInPath
    ? { origin: `${protocol}//${host}`, basePath: `${folder}${bucket}/` }
    : { origin: `${protocol}//${bucket}.${host}`, basePath: folder }
  return { ...place, region, service: 's3', getCredentials: keepCredentials(async () => getKeys()) }
}

function originOfAws(region: string): string {
  return `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}
