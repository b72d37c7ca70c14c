import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { DscError } from '../failure/dsc-error.js'

/**
 * Reads a file of certificates (PEM) that servers' own must be signed by. Rejects with CONFIG_INVALID if it holds no
 * certificates.
 */
export async function readCertificates(
  file: string,
  { of, hint }: { readonly of: string; readonly hint: string },
): Promise<string> {
  const fail = (problem: string, cause?: unknown) =>
    new DscError('CONFIG_INVALID', `the certificates for ${of} in ${file} ${problem}`, { hint, cause })
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw fail(`cannot be read: ${error.message}`, error)
  })
  // Without this check, a file without any certificate would pass as an empty list.
  if (!text.includes('-----BEGIN '))
    throw fail('are not certificates: expected PEM, found no -----BEGIN CERTIFICATE-----')
  try {
    createSecureContext({ ca: text })
  } catch (error) {
    throw fail(`cannot be used: ${(error as Error).message}`, error)
  }
  return text
}

/** The certificates (PEM) that Python's web clients would trust on this node; undefined if no file is configured. */
export async function readWebAuthorities(): Promise<string | undefined> {
  const file = process.env.REQUESTS_CA_BUNDLE || process.env.SSL_CERT_FILE
  if (!file) return undefined
  return readCertificates(file, {
    of: 'web servers and hubs',
    hint: 'SSL_CERT_FILE (or REQUESTS_CA_BUNDLE) must name a PEM file of certificates',
  })
}
