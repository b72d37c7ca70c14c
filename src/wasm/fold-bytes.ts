import {
  addI32,
  type Code,
  get,
  i32,
  isBelowI32,
  load,
  repeatWhile,
  set,
  simd,
  store,
  subtractI32,
  type WasmFunction,
} from './assembler.js'

/** Bytes per turn of `fold`. No distance may be shorter: a turn never reads its own output. */
export const FOLD_BYTES = 64

const XOR = 0x51

/**
 * `fold(from, to, out, back)` writes the bytes `from` to `to`, a nonzero multiple of 64, to `out`, and adds to each the
 * folded bytes that are `back` plus one of the distances before it. `out` may be `from`.
 *
 * Distances d, in bytes, are chosen so that a byte counts as much for a CRC as the sum of the same byte d places later,
 * for all d: exponents of a multiple of the polynomial with few terms, all of them multiples of 8 bits.
 */
export function foldFunction(distances: readonly number[]): WasmFunction {
  const [from, to, out, back, source] = [0, 1, 2, 3, 4]
  const deepest = Math.max(...distances)
  const vectors = Array.from({ length: FOLD_BYTES / 16 }, (_, index) => {
    const earlier = distances.map((distance) => load(get(source), 16 * index + deepest - distance))
    const added = earlier.reduce((left, right) => simd(XOR, left, right))
    return store(get(out), simd(XOR, load(get(from), 16 * index), added), 16 * index)
  })
  const next = (local: number): Code => set(local, addI32(get(local), i32(FOLD_BYTES)))
  const turn = [
    // Instruction offsets cannot be negative.
    ...set(source, subtractI32(subtractI32(get(out), get(back)), i32(deepest))),
    ...vectors.flat(),
    ...next(from),
    ...next(out),
  ]
  return {
    name: 'fold',
    parameters: ['i32', 'i32', 'i32', 'i32'],
    locals: ['i32'],
    body: repeatWhile(isBelowI32(get(from), get(to)), turn),
  }
}
