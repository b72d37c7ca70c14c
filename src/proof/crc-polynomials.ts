/** The cyclic checksums that S3 knows, by its names: reflected polynomials; start and end are inverted. */
export const CRC_POLYNOMIALS = {
  crc32: { bits: 32, polynomial: 0xedb88320n },
  crc32c: { bits: 32, polynomial: 0x82f63b78n },
  crc64nvme: { bits: 64, polynomial: 0x9a6c9329ac4bc9b5n },
} as const

/** A cyclic checksum. */
export type CrcAlgorithm = keyof typeof CRC_POLYNOMIALS
