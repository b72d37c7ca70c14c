import { X509Certificate } from 'node:crypto'
import { formatDuration } from '../../model/duration.js'

/** How long before a certificate expires the warnings start, in ms: two weeks. */
const WARN_BEFORE_MS = 14 * 86_400_000

/** When the first certificate in a PEM file expires, as Unix epoch in ms. Throws if there is no certificate. */
export function readExpiryMs(pem: string): number {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (!blocks) throw new RangeError('it holds no certificate (PEM)')
  return Math.min(...blocks.map((block) => Date.parse(new X509Certificate(block).validTo)))
}

/** Describes a certificate that has expired or soon will; undefined while there is time. */
export function describeExpiry(expiresAtMs: number, nowMs: number): string | undefined {
  const leftMs = expiresAtMs - nowMs
  if (leftMs > WARN_BEFORE_MS) return undefined
  const on = new Date(expiresAtMs).toISOString().replace('.000', '')
  return leftMs > 0
    ? `its certificate expires in ${formatDuration(leftMs)}, on ${on}`
    : `its certificate expired ${formatDuration(-leftMs)} ago, on ${on}: nobody takes from it`
}
