import type { Credentials } from '../own-access.js'

const REFRESH_BEFORE_EXPIRY_MS = 5 * 60_000
/** For credentials that live less than that: sessions of S3 Express, processes whose keys last minutes. */
const MIN_LEFT_SHARE = 0.25

/** Caches the result of `resolve` and calls it again 5 minutes before expiry, or when a quarter of its life is left. */
export function keepCredentials(
  resolve: () => Promise<Credentials>,
): () => Promise<Credentials> | Credentials {
  let current: Credentials | undefined
  let refreshing: Promise<Credentials> | undefined
  let refreshAtMs = Number.POSITIVE_INFINITY
  return () => {
    if (current && Date.now() < refreshAtMs) return current
    refreshing ??= resolve()
      .then((found) => {
        current = found
        const { expiresAtMs = Number.POSITIVE_INFINITY } = found
        const leftMs = Math.max(
          0,
          Math.min(REFRESH_BEFORE_EXPIRY_MS, (expiresAtMs - Date.now()) * MIN_LEFT_SHARE),
        )
        refreshAtMs = expiresAtMs - leftMs
        return found
      })
      .finally(() => {
        refreshing = undefined
      })
    return refreshing
  }
}
