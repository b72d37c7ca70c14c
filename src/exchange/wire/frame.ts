import { crc32 } from 'node:zlib'
import type { WireType } from '../plan/wire-type.js'

/** Every frame starts with this many bytes. */
export const HEADER_BYTES = 48
const MAGIC = 0x44534358 // DSCX
const VERSION = 2
/** In a header, a type is its place here. */
const WIRE_TYPES: readonly WireType[] = ['fp32', 'fp16', 'int8']

/** A frame's description of its payload. Two ranks that disagree on any field are out of step. */
export interface FrameHeader {
  readonly rank: number
  readonly epoch: number
  readonly step: number
  readonly bucket: number
  readonly wireType: WireType
  /** 0, or 1 when the bucket is repeated in fp32. */
  readonly attempt: number
  /** CRC-32 of the bucket's exponents, one byte each. Ranks know them; they must know the same. */
  readonly scales: number
  readonly hop: number
  readonly segment: number
  readonly bytes: number
}

/** The fields that a receiver knows beforehand, in the order in which it checks them. */
const CHECKED = [
  'epoch',
  'step',
  'bucket',
  'attempt',
  'wireType',
  'scales',
  'hop',
  'segment',
  'bytes',
] as const

/**
 * Serializes a header. CRC-32, as on all wires of dsc: Node has it in native code, and CRC-32C, which it lacks, finds
 * the same errors (TCP's own sum misses about one in 65 536). CRC-32C is for checksums that S3 recorded.
 */
export function formatHeader(header: FrameHeader, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES)
  bytes.writeUInt32BE(MAGIC, 0)
  bytes[4] = VERSION
  bytes[5] = header.attempt
  bytes[6] = WIRE_TYPES.indexOf(header.wireType)
  bytes[7] = 0
  bytes.writeUInt32BE(header.epoch, 8)
  bytes.writeUInt32BE(header.step, 12)
  bytes.writeUInt32BE(header.bucket, 16)
  bytes.writeUInt32BE(header.hop, 20)
  bytes.writeUInt32BE(header.segment, 24)
  bytes.writeUInt32BE(header.bytes, 28)
  bytes.writeUInt16BE(0, 32)
  bytes.writeUInt16BE(header.rank, 34)
  bytes.writeUInt32BE(header.scales, 36)
  bytes.writeUInt32BE(crc32(payload), 40)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 44)), 44)
  return bytes
}

/** Reads a header, or reports what is wrong with it. `crc` is the payload's. */
export function parseHeader(
  bytes: Buffer,
): { readonly header: FrameHeader; readonly crc: number } | { readonly problem: string } {
  if (bytes.readUInt32BE(0) !== MAGIC) return { problem: 'does not start with the mark of a dsc frame' }
  if (bytes[4] !== VERSION) return { problem: `has frame version ${bytes[4]}, this dsc speaks ${VERSION}` }
  if (crc32(bytes.subarray(0, 44)) !== bytes.readUInt32BE(44)) return { problem: 'has a damaged header' }
  const wireType = WIRE_TYPES[bytes[6] ?? -1]
  if (wireType === undefined) return { problem: `has the unknown type ${bytes[6]}` }
  return {
    crc: bytes.readUInt32BE(40),
    header: {
      rank: bytes.readUInt16BE(34),
      epoch: bytes.readUInt32BE(8),
      step: bytes.readUInt32BE(12),
      bucket: bytes.readUInt32BE(16),
      wireType,
      attempt: bytes[5] ?? 0,
      scales: bytes.readUInt32BE(36),
      hop: bytes.readUInt32BE(20),
      segment: bytes.readUInt32BE(24),
      bytes: bytes.readUInt32BE(28),
    },
  }
}

/** Describes where two ranks diverge, or undefined if they agree. */
export function findMismatch(expected: FrameHeader, found: FrameHeader, ownRank: number): string | undefined {
  const field = CHECKED.find((name) => expected[name] !== found[name])
  if (field === undefined) return undefined
  const at = field === 'step' ? '' : ` in step ${expected.step}, bucket ${expected.bucket}`
  return `rank ${found.rank} sent ${field} ${found[field]}, rank ${ownRank} expected ${expected[field]}${at}`
}
