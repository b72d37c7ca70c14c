/**
 * CRC-32C (Castagnoli), a byte at a time: meant for the 28 bytes of a frame's header. Payloads have the CRC-32 that
 * the table of samples records for each of them: node:zlib computes that one ten times as fast as this, and has no
 * CRC-32C.
 */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (let at = 0; at < bytes.length; at++) crc = TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  return crc
})
