import type { Credentials } from './sign-request.js'

const REFRESH_BEFORE_EXPIRY_MS = 5 * 60_000

/** Keeps what `resolve` gave and calls it again 5 minutes before that expires. */
export function keepCredentials(
  resolve: () => Promise<Credentials>,
): () => Promise<Credentials> | Credentials {
  let current: Credentials | undefined
  let refreshing: Promise<Credentials> | undefined
  return () => {
    if (current && (current.expiresAtMs ?? Number.POSITIVE_INFINITY) - Date.now() > REFRESH_BEFORE_EXPIRY_MS)
      return current
    refreshing ??= resolve()
      .then((found) => {
        current = found
        return found
      })
      .finally(() => {
        refreshing = undefined
      })
    return refreshing
  }
}
