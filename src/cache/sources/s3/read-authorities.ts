import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { loadConfig } from '@smithy/core/config'
import { DscError } from '../../../failure/dsc-error.js'

/**
 * Reads the certificates (PEM) that servers' own must be signed by, from the file that the AWS CLI would use, too:
 * AWS_CA_BUNDLE, else `ca_bundle` of the profile. Undefined: nobody named one, those that Node.js trusts count.
 */
export async function readAuthorities(profile: string | undefined): Promise<string | undefined> {
  const file = await loadConfig<string | undefined>(
    {
      environmentVariableSelector: ({ AWS_CA_BUNDLE }) => AWS_CA_BUNDLE || undefined,
      configFileSelector: ({ ca_bundle }) => ca_bundle || undefined,
      default: undefined,
    },
    profile === undefined ? {} : { profile },
  )()
  if (file === undefined) return undefined
  const fail = (problem: string, cause?: unknown) =>
    new DscError('CONFIG_INVALID', `the certificates for S3 in ${file} ${problem}`, {
      hint: 'AWS_CA_BUNDLE, or ca_bundle of the AWS profile, must name a PEM file of certificates',
      cause,
    })
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw fail(`cannot be read: ${error.message}`, error)
  })
  // What has no certificate in it at all is otherwise taken for an empty list.
  if (!text.includes('-----BEGIN '))
    throw fail('are none: expected PEM, found no -----BEGIN CERTIFICATE-----')
  try {
    createSecureContext({ ca: text })
  } catch (error) {
    throw fail(`cannot be used: ${(error as Error).message}`, error)
  }
  return text
}
