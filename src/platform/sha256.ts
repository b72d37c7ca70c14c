// Constants as literals, and the rounds below without arrays: every `dsc prepare` runs them once, in the interpreter.
/** Fractional parts of the cube roots of the first 64 primes, as in FIPS 180-4, 4.2.2. */
const CONSTANTS = readWords(`
  428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5
  d807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe 9bdc06a7 c19bf174
  e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da
  983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967
  27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85
  a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070
  19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3
  748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2
`)
/** Fractional parts of the square roots of the first eight primes (FIPS 180-4, 5.3.3). */
const START = readWords('6a09e667 bb67ae85 3c6ef372 a54ff53a 510e527f 9b05688c 1f83d9ab 5be0cd19')

const BLOCK_BYTES = 64

/**
 * HMAC-SHA-256 of a short text (RFC 2104, FIPS 180-4), in hex. Hand-written because every `dsc prepare` needs one, and
 * loading `node:crypto` takes 9 ms, a tenth of the total (`npm run bench -- warm`). Use `node:crypto` for anything
 * longer.
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
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
  for (let t = 0; t < 64; t++) {
    const choice = (e & f) ^ (~e & g)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const first =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + CONSTANTS[t]! + words[t]!) | 0
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  const added = [a, b, c, d, e, f, g, h]
  for (let index = 0; index < 8; index++) state[index] = state[index]! + added[index]!
}

function readWords(table: string): Uint32Array {
  return Uint32Array.from(table.trim().split(/\s+/), (word) => Number.parseInt(word, 16))
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}
