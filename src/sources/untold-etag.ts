/** Prefix of the etag that an object gets here if its server sends none. */
export const UNTOLD = 'untold-'

/** Whether an etag is the source's own, which then refuses to send the rest of an object that was replaced. */
export function isTold(etag: string | null): etag is string {
  return etag !== null && !etag.startsWith(UNTOLD)
}
