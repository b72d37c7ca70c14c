import { BoundedMap } from '../model/bounded-map.js'
import { CRC_POLYNOMIALS, type CrcAlgorithm } from './crc-polynomials.js'

/** A linear map over GF(2): row i is the image of bit i. */
type Matrix = readonly bigint[]

/**
 * Combines the CRCs of parts, in order, into the CRC of the whole, all big-endian: so parts fetched in parallel can be
 * verified without reading the file again. Appending n bytes multiplies the CRC so far by a fixed matrix.
 */
export function combineCrcs(
  algorithm: CrcAlgorithm,
  parts: readonly { readonly crc: Uint8Array; readonly length: number }[],
): Buffer {
  let whole = 0n
  for (const part of parts) {
    whole =
      apply(findMatrix(algorithm, part.length), whole) ^ BigInt(`0x${Buffer.from(part.crc).toString('hex')}`)
  }
  const { bits } = CRC_POLYNOMIALS[algorithm]
  return Buffer.from(whole.toString(16).padStart(bits / 4, '0'), 'hex')
}

// Computing one takes tens of milliseconds, and nearly all parts of all objects have the same length.
const matrices = new BoundedMap<string, Matrix>(1000)
/** By algorithm: the matrices of 1, 2, 4, 8… zero bytes. */
const powers = new Map<CrcAlgorithm, Matrix[]>()

function findMatrix(algorithm: CrcAlgorithm, bytes: number): Matrix {
  return matrices.getOrMake(`${algorithm} ${bytes}`, () => appendZeros(algorithm, bytes))
}

function findPower(algorithm: CrcAlgorithm, exponent: number): Matrix {
  let known = powers.get(algorithm)
  if (!known) {
    known = [appendOneByte(algorithm)]
    powers.set(algorithm, known)
  }
  while (known.length <= exponent) known.push(multiply(known.at(-1)!, known.at(-1)!))
  return known[exponent]!
}

function appendOneByte(algorithm: CrcAlgorithm): Matrix {
  const { bits, polynomial } = CRC_POLYNOMIALS[algorithm]
  const oneBit: bigint[] = [polynomial]
  for (let bit = 1; bit < bits; bit += 1) oneBit.push(1n << BigInt(bit - 1))
  let power: Matrix = oneBit
  for (let doubled = 0; doubled < 3; doubled += 1) power = multiply(power, power) // 8 bits
  return power
}

function appendZeros(algorithm: CrcAlgorithm, bytes: number): Matrix {
  const { bits } = CRC_POLYNOMIALS[algorithm]
  let result: Matrix = Array.from({ length: bits }, (_, bit) => 1n << BigInt(bit))
  for (let left = bytes, exponent = 0; left > 0; left = Math.floor(left / 2), exponent += 1)
    if (left % 2 === 1) result = multiply(findPower(algorithm, exponent), result)
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
