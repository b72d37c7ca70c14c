const MASK = (1n << 64n) - 1n
const GOLDEN = 0x9e3779b97f4a7c15n

/** The finalizer of SplitMix64: a bijection on 64-bit words. */
function mix(word: bigint): bigint {
  let z = word & MASK
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK
  return z ^ (z >> 31n)
}

/** A stream of uniform integers, determined by its seed alone. */
interface RandomStream {
  /** The next word, 0 to 2^32 − 1. */
  nextUint32(): number
  /** The next integer below `bound` (1 to 2^32), unbiased: words past the last full multiple are drawn again. */
  nextBelow(bound: number): number
}

/**
 * xoshiro128** for one epoch of one seed. Its 128-bit state is outputs 2·epoch and 2·epoch + 1 of SplitMix64
 * started at mix(seed), low half first. The Python twin is `dsc/feed/order.py`; `fixtures/feed/order-vectors.json`
 * pins both.
 */
export function createRandomStream(seed: number, epoch: number): RandomStream {
  const start = mix(BigInt(seed) + GOLDEN)
  const first = mix(start + GOLDEN * BigInt(2 * epoch + 1))
  const second = mix(start + GOLDEN * BigInt(2 * epoch + 2))
  let a = Number(first & 0xffffffffn) | 0
  let b = Number(first >> 32n) | 0
  let c = Number(second & 0xffffffffn) | 0
  let d = Number(second >> 32n) | 0
  if ((a | b | c | d) === 0) a = 1 // the all-zero state is a fixed point

  const nextUint32 = (): number => {
    const scaled = Math.imul(b, 5)
    const result = Math.imul((scaled << 7) | (scaled >>> 25), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return result
  }
  const nextBelow = (bound: number): number => {
    const limit = 4294967296 - (4294967296 % bound)
    let word = nextUint32()
    while (word >= limit) word = nextUint32()
    return word % bound
  }
  return { nextUint32, nextBelow }
}
