import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Makes a certificate for 127.0.0.1, which vouches for itself, and its key, under `folder`. */
export function makeCertificate(folder: string): { readonly certFile: string; readonly keyFile: string } {
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=dsc'],
      ...['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', keyFile, '-out', certFile],
    ],
    { stdio: 'ignore' },
  )
  return { certFile, keyFile }
}
