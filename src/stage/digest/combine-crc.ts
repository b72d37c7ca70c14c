import type { CrcAlgorithm } from './digest.js'

const POLYNOMIALS: Record<CrcAlgorithm, { readonly bits: number; readonly polynomial: bigint }> = {
  crc32: { bits: 32, polynomial: 0xedb88320n },
  crc32c: { bits: 32, polynomial: 0x82f63b78n },
  crc64nvme: { bits: 64, polynomial: 0x9a6c9329ac4bc9b5n },
}

/** A linear map over GF(2): row i is where bit i goes. */
type Matrix = readonly bigint[]

/**
 * The CRC of a whole from the CRCs of its parts in order, all big-endian: what makes parallel parts provable
 * without reading the file again. Appending n bytes multiplies the CRC so far by a fixed matrix.
 */
export function combineCrcs(
  algorithm: CrcAlgorithm,
  parts: readonly { readonly crc: Uint8Array; readonly length: number }[],
): Buffer {
  const matrices = new Map<number, Matrix>() // nearly all parts have one length
  let whole = 0n
  for (const part of parts) {
    let matrix = matrices.get(part.length)
    if (!matrix) {
      matrix = appendZeros(algorithm, part.length)
      matrices.set(part.length, matrix)
    }
    whole = apply(matrix, whole) ^ BigInt(`0x${Buffer.from(part.crc).toString('hex')}`)
  }
  const { bits } = POLYNOMIALS[algorithm]
  return Buffer.from(whole.toString(16).padStart(bits / 4, '0'), 'hex')
}

function appendZeros(algorithm: CrcAlgorithm, bytes: number): Matrix {
  const { bits, polynomial } = POLYNOMIALS[algorithm]
  const oneBit: bigint[] = [polynomial]
  for (let bit = 1; bit < bits; bit += 1) oneBit.push(1n << BigInt(bit - 1))
  let power: Matrix = oneBit
  for (let doubled = 0; doubled < 3; doubled += 1) power = multiply(power, power) // 8 bits
  let result: Matrix = Array.from({ length: bits }, (_, bit) => 1n << BigInt(bit))
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = multiply(power, result)
    power = multiply(power, power)
  }
  return result
}

function multiply(outer: Matrix, inner: Matrix): Matrix {
  return inner.map((row) => apply(outer, row))
}

function apply(matrix: Matrix, vector: bigint): bigint {
  let sum = 0n
  for (let bit = 0, left = vector; left > 0n; bit += 1, left >>= 1n) if (left & 1n) sum ^= matrix[bit]!
  return sum
}
