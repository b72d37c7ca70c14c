import { loadConfig } from '@smithy/core/config'
import { findProxy } from '../../http/find-proxy.js'
import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { giveHome } from '../../platform/this-user.js'
import { readCertificates } from '../read-certificates.js'
import type { ListedObject, ListOptions, Source } from '../source.js'
import { readAwsSettings } from './aws-settings.js'
import { listObjects } from './list-objects.js'
import { PageLister, type S3Access } from './list-page.js'
import { createOwnTarget, type OwnS3Access } from './own-target.js'
import { findPlainTarget } from './plain-target.js'
import { nameOfObject, S3Fetcher } from './s3-fetcher.js'
import type { S3Target } from './s3-target.js'
import type { SdkTarget } from './sdk-target.js'

/** Directory buckets of S3 Express One Zone. */
const DIRECTORY_BUCKET = /--x-s3$/

/**
 * Opens the S3 side of a dataset. If the configuration does not state everything plainly, the AWS SDK resolves
 * configuration, credentials and endpoint; listing and reading do without it. `own`: read it as this user instead, with
 * nothing of this process's.
 */
export function openS3Source(dataset: Dataset, own?: OwnS3Access): Source {
  const url = parseSourceUrl(dataset.source)
  if (url.scheme !== 's3') throw new RangeError(`expected an s3:// source, found ${dataset.source}`)
  const { bucket, prefix } = url
  const what = `s3://${bucket}/${prefix}`
  const opened: SdkTarget[] = []
  let access: Promise<S3Access> | undefined

  async function open(region: string | undefined): Promise<S3Access> {
    giveHome(process.env)
    if (own) return describe(createOwnTarget(own, { bucket, region }), await readAuthorities(undefined))
    const aws = await readAwsSettings(dataset, process.env)
    const ca = await readAuthorities(aws.profile)
    const plain = await findPlainTarget(dataset, { bucket, region, environment: process.env, aws })
    if (plain) return describe(plain, ca)
    const { openSdkTarget } = await import('./sdk-target.js')
    const target = await openSdkTarget(dataset, { bucket, what, region, ca, aws })
    opened.push(target)
    return describe(target, ca)
  }

  function describe(
    { origin, basePath, region, service, getCredentials }: S3Target,
    ca: string | undefined,
  ): S3Access {
    return {
      location: {
        origin,
        host: origin.replace(/^https?:\/\//, ''),
        ca,
        proxy: findProxy(origin, process.env),
        basePath,
        region,
        service,
        bucket,
        prefix,
        requesterPays: dataset.requesterPays ?? false,
        isAnonymous: dataset.anonymous ?? false,
      },
      getCredentials,
    }
  }

  /** `region` replaces the configured one once the bucket has named its own. */
  function find(region?: string): Promise<S3Access> {
    if (access !== undefined && region === undefined) return access
    const opening = open(region)
    opening.catch(() => {
      if (access === opening) access = undefined
    })
    access = opening
    return opening
  }

  const lister = new PageLister(find)
  return {
    url: what,
    async *list(options) {
      let isEmpty = true
      for await (const page of listObjects({
        ...options,
        // Directory buckets list in no order, and only from the beginning.
        isSequential: options.isSequential === true || DIRECTORY_BUCKET.test(bucket),
        listPage: (...asked) => lister.listPage(...asked),
        url: what,
      })) {
        isEmpty &&= page.length === 0
        yield page
      }
      if (!isEmpty || prefix === '') return
      const single = await findObject(lister, options)
      if (single) yield [{ ...single, key: nameOfObject(prefix) }]
    },
    async openFetcher({ connections }) {
      const { location, getCredentials } = await find()
      return new S3Fetcher(location, getCredentials, connections)
    },
    async describeAccess() {
      const { location, getCredentials } = await find()
      return { scheme: 's3', location, answer: getCredentials }
    },
    async close() {
      await lister.close()
      await access?.catch(() => undefined)
      for (const target of opened.splice(0)) target.close()
      access = undefined
    },
  }
}

/** The object that the source names instead of a folder. */
async function findObject(lister: PageLister, options: ListOptions): Promise<ListedObject | undefined> {
  const { signal = new AbortController().signal, stallTimeoutMs, onRetry } = options
  const { objects } = await lister.listPage({ isOfObject: true }, { signal, stallTimeoutMs, onRetry })
  return objects.find(({ key }) => key === '')
}

/**
 * Reads the certificates (PEM) that servers' own must be signed by, from the file that the AWS CLI would use, too:
 * AWS_CA_BUNDLE, else `ca_bundle` of the profile. Undefined if no file is configured: those that Node.js trusts count.
 */
async function readAuthorities(profile: string | undefined): Promise<string | undefined> {
  const file = await loadConfig<string | undefined>(
    {
      environmentVariableSelector: ({ AWS_CA_BUNDLE }) => AWS_CA_BUNDLE || undefined,
      configFileSelector: ({ ca_bundle }) => ca_bundle || undefined,
      default: undefined,
    },
    profile === undefined ? {} : { profile },
  )()
  if (file === undefined) return undefined
  return readCertificates(file, {
    of: 'S3',
    hint: 'AWS_CA_BUNDLE, or ca_bundle of the AWS profile, must name a PEM file of certificates',
  })
}
