import type { RecordEvent } from './record-event.js'

/** The form in which a staging notes where its bytes came from. */
interface OriginsNoted {
  readonly storeBytes: number
  readonly peerBytes: Readonly<Record<string, number>>
}

/** Bytes that a `staged` event fetched from its source, and those from other nodes. */
export function countOrigins(detail: RecordEvent['detail']): {
  readonly storeBytes: number
  readonly peerBytes: number
} {
  const origins = detail.origins as OriginsNoted | undefined
  return {
    storeBytes: Number(origins?.storeBytes ?? detail.fetchedBytes ?? 0),
    peerBytes: Object.values(origins?.peerBytes ?? {}).reduce((sum, bytes) => sum + bytes, 0),
  }
}
