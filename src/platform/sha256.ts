// Constants as literals, and the rounds below without arrays: every `dsc prepare` runs them once, in the interpreter.
/** Fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
const CONSTANTS = Uint32Array.of(
  0x428a2f98,
  0x71374491,
  0xb5c0fbcf,
  0xe9b5dba5,
  0x3956c25b,
  0x59f111f1,
  0x923f82a4,
  0xab1c5ed5,
  0xd807aa98,
  0x12835b01,
  0x243185be,
  0x550c7dc3,
  0x72be5d74,
  0x80deb1fe,
  0x9bdc06a7,
  0xc19bf174,
  0xe49b69c1,
  0xefbe4786,
  0x0fc19dc6,
  0x240ca1cc,
  0x2de92c6f,
  0x4a7484aa,
  0x5cb0a9dc,
  0x76f988da,
  0x983e5152,
  0xa831c66d,
  0xb00327c8,
  0xbf597fc7,
  0xc6e00bf3,
  0xd5a79147,
  0x06ca6351,
  0x14292967,
  0x27b70a85,
  0x2e1b2138,
  0x4d2c6dfc,
  0x53380d13,
  0x650a7354,
  0x766a0abb,
  0x81c2c92e,
  0x92722c85,
  0xa2bfe8a1,
  0xa81a664b,
  0xc24b8b70,
  0xc76c51a3,
  0xd192e819,
  0xd6990624,
  0xf40e3585,
  0x106aa070,
  0x19a4c116,
  0x1e376c08,
  0x2748774c,
  0x34b0bcb5,
  0x391c0cb3,
  0x4ed8aa4a,
  0x5b9cca4f,
  0x682e6ff3,
  0x748f82ee,
  0x78a5636f,
  0x84c87814,
  0x8cc70208,
  0x90befffa,
  0xa4506ceb,
  0xbef9a3f7,
  0xc67178f2,
)
/** Fractional parts of the square roots of the first eight primes (FIPS 180-4, 5.3.3). */
const START = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
)

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

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}
