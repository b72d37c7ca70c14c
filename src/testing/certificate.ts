import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'

const KEY = ['-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=dsc']
const NAMES = ['-addext', 'subjectAltName=IP:127.0.0.1']

/**
 * Makes a certificate for 127.0.0.1 and its key, under `folder`. It vouches for itself, or, where it `isSigned`, an
 * authority does that nobody knows.
 */
export function makeCertificate(
  folder: string,
  { days = 1, isSigned = false }: { readonly days?: number; readonly isSigned?: boolean } = {},
): { readonly certFile: string; readonly keyFile: string } {
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const wish = ['-days', String(days), ...KEY, ...NAMES, '-keyout', keyFile, '-out', certFile]
  if (isSigned) {
    const [authority, authorityKey] = [join(folder, 'authority.pem'), join(folder, 'authority-key.pem')]
    openssl('req', '-x509', '-days', '1', ...KEY, '-keyout', authorityKey, '-out', authority)
    openssl('req', '-x509', '-CA', authority, '-CAkey', authorityKey, ...wish)
    rmSync(authorityKey)
  } else {
    openssl('req', '-x509', ...wish)
  }
  return { certFile, keyFile }
}

function openssl(...words: readonly string[]): void {
  execFileSync('openssl', words, { stdio: 'ignore' })
}
