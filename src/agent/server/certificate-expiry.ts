import { X509Certificate } from 'node:crypto'
import { formatDuration } from '../../model/duration.js'

/** How long before its end a certificate is spoken of, ms: two weeks. */
const WARN_BEFORE_MS = 14 * 86_400_000

/** When a PEM file's certificates are no longer valid, all of them, Unix epoch in ms. Throws when the file holds none. */
export function readExpiryMs(pem: string): number {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (!blocks) throw new RangeError('it holds no certificate (PEM)')
  return Math.min(...blocks.map((block) => Date.parse(new X509Certificate(block).validTo)))
}

/** Says that a certificate has expired or is about to; undefined while there is time. */
export function describeExpiry(expiresAtMs: number, nowMs: number): string | undefined {
  const leftMs = expiresAtMs - nowMs
  if (leftMs > WARN_BEFORE_MS) return undefined
  const on = new Date(expiresAtMs).toISOString().replace('.000', '')
  return leftMs > 0
    ? `its certificate expires in ${formatDuration(leftMs)}, on ${on}`
    : `its certificate expired ${formatDuration(-leftMs)} ago, on ${on}: nobody takes from it`
}
