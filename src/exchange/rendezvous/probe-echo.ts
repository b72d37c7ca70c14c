import type { Socket } from 'node:net'
import { LengthPrefixedReader, type MessageShape } from '../../frames/length-prefixed.js'

/** A probe's header: how many bytes follow, big-endian. */
export const PROBE_HEADER_BYTES = 4
/** What comes back when all have arrived. */
const PROBE_ANSWER = Uint8Array.of(1)

const SHAPE: MessageShape<undefined> = {
  startBytes: PROBE_HEADER_BYTES,
  headBytesOf: () => 0,
  parse: (start) => ({ head: undefined, payloadBytes: start.readUInt32BE(0) }),
}

/** Answers every probe message on `socket` with one byte, as soon as its last byte is here. `first` came before. */
export function answerProbes(socket: Socket, first: Buffer): void {
  const probes = new LengthPrefixedReader(SHAPE, () => ({
    take: () => {},
    end: () => void socket.write(PROBE_ANSWER),
  }))
  socket.on('data', (bytes) => probes.push(bytes))
  probes.push(first)
}
