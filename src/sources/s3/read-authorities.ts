import { loadConfig } from '@smithy/core/config'
import { readCertificates } from '../read-certificates.js'

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
  return readCertificates(file, {
    of: 'S3',
    hint: 'AWS_CA_BUNDLE, or ca_bundle of the AWS profile, must name a PEM file of certificates',
  })
}
