/** Fractional parts of the cube roots of the first 64 primes, and of the square roots of the first eight (FIPS 180-4, 4.2.2 and 5.3.3). */
const PRIMES = findPrimes(64)
const CONSTANTS = PRIMES.map((prime) => fractionOf(Math.cbrt(prime)))
const START = PRIMES.slice(0, 8).map((prime) => fractionOf(Math.sqrt(prime)))

const BLOCK_BYTES = 64

/**
 * HMAC-SHA-256 of a short text (RFC 2104, FIPS 180-4), in hex. By hand because every `dsc prepare` needs one, and
 * loading `node:crypto` for it takes 9 ms, a tenth of all (`npm run bench:warm`). For anything longer, use that.
 */
export function hmacSha256(key: string, text: string): string {
  const padded = Buffer.alloc(BLOCK_BYTES)
  const bytes = Buffer.from(key)
  padded.set(bytes.length > BLOCK_BYTES ? sha256(bytes) : bytes)
  const inner = sha256(Buffer.concat([padded.map((byte) => byte ^ 0x36), Buffer.from(text)]))
  return sha256(Buffer.concat([padded.map((byte) => byte ^ 0x5c), inner])).toString('hex')
}

function sha256(message: Uint8Array): Buffer {
  const length = Math.ceil((message.length + 9) / BLOCK_BYTES) * BLOCK_BYTES
  const padded = Buffer.alloc(length)
  padded.set(message)
  padded[message.length] = 0x80
  padded.writeUInt32BE(message.length * 8, length - 4)
  const state = Uint32Array.from(START)
  for (let at = 0; at < length; at += BLOCK_BYTES) addBlock(state, padded.subarray(at, at + BLOCK_BYTES))
  const digest = Buffer.alloc(32)
  for (const [index, word] of state.entries()) digest.writeUInt32BE(word, 4 * index)
  return digest
}

/** One block of FIPS 180-4, 6.2.2. */
function addBlock(state: Uint32Array, block: Buffer): void {
  const words = new Uint32Array(64)
  for (let t = 0; t < 16; t++) words[t] = block.readUInt32BE(4 * t)
  for (let t = 16; t < 64; t++) {
    const [early, late] = [words[t - 15]!, words[t - 2]!]
    const first = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3)
    const second = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10)
    words[t] = words[t - 16]! + first + words[t - 7]! + second
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  for (let t = 0; t < 64; t++) {
    const choice = (e & f) ^ (~e & g)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const first =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + CONSTANTS[t]! + words[t]!) | 0
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index] = state[index]! + word
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}

function findPrimes(count: number): readonly number[] {
  const primes: number[] = []
  for (let candidate = 2; primes.length < count; candidate++)
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate)
  return primes
}

function fractionOf(value: number): number {
  return Math.floor((value % 1) * 2 ** 32)
}
