import {
  addI32,
  andI32,
  assembleModule,
  type Code,
  get,
  i32,
  isBelowI32,
  loadI64,
  repeatWhile,
  set,
  shiftLeftI32,
  shiftRightI32,
  upperHalf,
  type WasmFunction,
  wrapI64,
  xorI64,
} from '../wasm/assembler.js'
import { foldFunction } from '../wasm/fold-bytes.js'

/** Bytes that one turn of `step` consumes; each has a table. */
export const STEP_BYTES = 16

/**
 * Assembles a WebAssembly module with two functions for a reflected CRC of up to 64 bits. JavaScript has no fast 64-bit
 * integers, and WebAssembly no carry-less multiplication.
 */
export function assembleCrcModule(distances: readonly number[]): Uint8Array<ArrayBuffer> {
  return assembleModule([step(), foldFunction(distances)])
}

/**
 * `step(crc, from, to)` continues the CRC over bytes `from` to `to`, a multiple of 16 and at least 16. Tables of 256
 * 64-bit entries lie at address 0. Four times as fast as pairs of 32 bits in JavaScript (2.4 against 0.6 GB/s).
 */
function step(): WasmFunction {
  const [crc, from, to, low, high] = [0, 1, 2, 3, 4]
  const entries = Array.from({ length: STEP_BYTES }, (_, byte) =>
    lookUp(byte < 8 ? low : high, byte % 8, STEP_BYTES - 1 - byte),
  )
  const turn = [
    ...set(low, xorI64(get(crc), loadI64(get(from)))),
    ...set(high, loadI64(get(from), 8)),
    ...set(crc, sum(entries)),
    ...set(from, addI32(get(from), i32(STEP_BYTES))),
  ]
  return {
    name: 'step',
    parameters: ['i64', 'i32', 'i32'],
    result: 'i64',
    locals: ['i64', 'i64'],
    body: [...repeatWhile(isBelowI32(get(from), get(to)), turn), ...get(crc)],
  }
}

/** Adds pairs, then pairs of those: the next step waits for four additions instead of sixteen in a row. */
function sum(terms: readonly Code[]): Code {
  if (terms.length === 1) return terms[0]!
  const half = terms.length / 2
  return xorI64(sum(terms.slice(0, half)), sum(terms.slice(half)))
}

/** The entry of `table` for one byte of a variable. Entries have 8 bytes, hence the 3 bits. */
function lookUp(variable: number, byte: number, table: number): Code {
  const word = wrapI64(byte < 4 ? get(variable) : upperHalf(get(variable)))
  const bits = (byte % 4) * 8
  const shifted = bits === 0 ? shiftLeftI32(word, 3) : shiftRightI32(word, bits - 3)
  return loadI64(andI32(shifted, i32(255 * 8)), table * 256 * 8)
}
