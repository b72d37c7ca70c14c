import { HEADER_BYTES, parseHeader, STORAGE_MESSAGE, type StorageHeader } from './storage-wire.js'

export interface FrameHandlers {
  /** Some bytes of an ITEMS frame, in order. */
  onItems(request: number, bytes: Buffer): void
  /** Any other frame, whole. */
  onControl(type: number, request: number, payload: Buffer): void
}

/** Takes DSCB frames out of a stream of bytes, however it is cut. Items pass through without being collected. */
export function createFrameParser(peer: string, handlers: FrameHandlers): (bytes: Buffer) => void {
  const headerBytes = Buffer.alloc(HEADER_BYTES)
  let headerFill = 0
  let header: StorageHeader | undefined
  let control: Buffer | undefined
  let bodyDone = 0
  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      if (!header) {
        const count = Math.min(HEADER_BYTES - headerFill, bytes.length - at)
        bytes.copy(headerBytes, headerFill, at, at + count)
        headerFill += count
        at += count
        if (headerFill < HEADER_BYTES) return
        headerFill = 0
        header = parseHeader(headerBytes, peer)
        bodyDone = 0
        control = header.type === STORAGE_MESSAGE.items ? undefined : Buffer.allocUnsafe(header.length)
      }
      const count = Math.min(header.length - bodyDone, bytes.length - at)
      if (control) bytes.copy(control, bodyDone, at, at + count)
      else handlers.onItems(header.request, bytes.subarray(at, at + count))
      bodyDone += count
      at += count
      if (bodyDone < header.length) return
      const { type, request } = header
      header = undefined
      if (control) handlers.onControl(type, request, control)
    }
  }
}
