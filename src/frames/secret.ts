import { timingSafeEqual } from 'node:crypto'

/** Whether `shown` is the secret. The time it takes reveals only whether the lengths are equal. */
export function isSecret(shown: string | Uint8Array, secret: string | Uint8Array): boolean {
  const [a, b] = [Buffer.from(shown as string), Buffer.from(secret as string)]
  return a.length === b.length && timingSafeEqual(a, b)
}
