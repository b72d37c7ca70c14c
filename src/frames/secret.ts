import { timingSafeEqual } from 'node:crypto'

/** Whether `shown` is the secret. Only whether the lengths are equal can be seen from the time it takes. */
export function isSecret(shown: string | Uint8Array, secret: string | Uint8Array): boolean {
  const [a, b] = [Buffer.from(shown as string), Buffer.from(secret as string)]
  return a.length === b.length && timingSafeEqual(a, b)
}
