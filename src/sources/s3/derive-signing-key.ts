import { createECDH, createHmac, createPrivateKey, type KeyObject } from 'node:crypto'

/** The name of AWS Signature Version 4A, which is valid in several regions. */
export const V4A = 'AWS4-ECDSA-P256-SHA256'
/** Order of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/**
 * Derives the private key of Signature Version 4A from access keys: NIST SP 800-108 in counter mode, repeated in the
 * rare case that the result lies outside the curve's order.
 */
export function deriveSigningKey({
  accessKeyId,
  secretAccessKey,
}: {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}): KeyObject {
  for (let counter = 1; counter < 255; counter += 1) {
    const candidate = createHmac('sha256', `AWS4A${secretAccessKey}`)
      .update(Buffer.from([0, 0, 0, 1]))
      .update(`${V4A}\0${accessKeyId}`)
      .update(Buffer.from([counter, 0, 0, 1, 0]))
      .digest('hex')
    const value = BigInt(`0x${candidate}`)
    if (value <= ORDER - 2n)
      return toPrivateKey(Buffer.from((value + 1n).toString(16).padStart(64, '0'), 'hex'))
  }
  throw new RangeError('no signing key follows from these access keys')
}

function toPrivateKey(secret: Buffer): KeyObject {
  const curve = createECDH('prime256v1')
  curve.setPrivateKey(secret)
  const point = curve.getPublicKey() // 0x04, x, y
  const [d, x, y] = [secret, point.subarray(1, 33), point.subarray(33)].map((part) =>
    part.toString('base64url'),
  )
  return createPrivateKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', d: d!, x: x!, y: y! } })
}
