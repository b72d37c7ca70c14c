import type { Socket } from 'node:net'
import { LengthPrefixedReader, type MessageShape } from '../../frames/length-prefixed.js'

/** A probe's header: the number of bytes that follow, big-endian. */
export const PROBE_HEADER_BYTES = 4
/** The answer once all bytes have arrived. */
const PROBE_ANSWER = Uint8Array.of(1)

const SHAPE: MessageShape<undefined> = {
  startBytes: PROBE_HEADER_BYTES,
  headBytesOf: () => 0,
  parse: (start) => ({ head: undefined, payloadBytes: start.readUInt32BE(0) }),
}

/** Answers every probe message on `socket` with one byte, as soon as its last byte arrives. `first` was read before. */
export function answerProbes(socket: Socket, first: Buffer): void {
  const probes = new LengthPrefixedReader(SHAPE, () => ({
    take: () => {},
    end: () => void socket.write(PROBE_ANSWER),
  }))
  socket.on('data', (bytes) => probes.push(bytes))
  probes.push(first)
}
