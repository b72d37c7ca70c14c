import type { Socket } from 'node:net'

/** A probe's header: how many bytes follow, big-endian. */
export const PROBE_HEADER_BYTES = 4
/** What comes back when all have arrived. */
const PROBE_ANSWER = Uint8Array.of(1)

/** Answers every probe message on `socket` with one byte, as soon as its last byte is here. `first` came before. */
export function answerProbes(socket: Socket, first: Buffer): void {
  const header = Buffer.alloc(PROBE_HEADER_BYTES)
  let headerFilled = 0
  let missing = 0
  const take = (bytes: Buffer) => {
    let at = 0
    while (at < bytes.length) {
      if (headerFilled < PROBE_HEADER_BYTES) {
        const part = bytes.subarray(at, at + PROBE_HEADER_BYTES - headerFilled)
        header.set(part, headerFilled)
        headerFilled += part.length
        at += part.length
        if (headerFilled === PROBE_HEADER_BYTES) missing = header.readUInt32BE(0)
      }
      const used = Math.min(missing, bytes.length - at)
      missing -= used
      at += used
      if (headerFilled === PROBE_HEADER_BYTES && missing === 0) {
        socket.write(PROBE_ANSWER)
        headerFilled = 0
      }
    }
  }
  socket.on('data', take)
  take(first)
}
