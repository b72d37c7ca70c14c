import type { Socket } from 'node:net'
import { FixedBytes } from '../../platform/fixed-bytes.js'

/** A probe's header: how many bytes follow, big-endian. */
export const PROBE_HEADER_BYTES = 4
/** What comes back when all have arrived. */
const PROBE_ANSWER = Uint8Array.of(1)

/** Answers every probe message on `socket` with one byte, as soon as its last byte is here. `first` came before. */
export function answerProbes(socket: Socket, first: Buffer): void {
  const header = new FixedBytes(PROBE_HEADER_BYTES)
  let missing = 0
  const take = (bytes: Buffer) => {
    let at = 0
    while (at < bytes.length) {
      if (!header.isFull) {
        at = header.fill(bytes, at)
        if (header.isFull) missing = header.bytes.readUInt32BE(0)
      }
      const used = Math.min(missing, bytes.length - at)
      missing -= used
      at += used
      if (header.isFull && missing === 0) {
        socket.write(PROBE_ANSWER)
        header.clear()
      }
    }
  }
  socket.on('data', take)
  take(first)
}
