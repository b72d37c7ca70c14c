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
  wrapI64,
  xorI64,
} from '../../wasm/assembler.js'

/** Bytes that one turn of the loop takes; there is a table for each. */
export const STEP_BYTES = 16

/** Variables of `step`: its parameters, then two locals. */
const CRC = 0
const FROM = 1
const TO = 2
const LOW = 3
const HIGH = 4

/**
 * A WebAssembly module with one function, `step(crc, from, to)`: carries a reflected CRC of up to 64 bits on over
 * bytes `from` to `to`, a multiple of 16 and not none. Tables of 256 64-bit entries lie at address 0. JavaScript has
 * no 64-bit integers that are quick; this is four times as fast as pairs of 32 bits (2.4 against 0.6 GB/s).
 */
export function assembleCrcModule(): Uint8Array<ArrayBuffer> {
  const entries = Array.from({ length: STEP_BYTES }, (_, byte) =>
    lookUp(byte < 8 ? LOW : HIGH, byte % 8, STEP_BYTES - 1 - byte),
  )
  const turn = [
    ...set(LOW, xorI64(get(CRC), loadI64(get(FROM)))),
    ...set(HIGH, loadI64(get(FROM), 8)),
    ...set(CRC, sum(entries)),
    ...set(FROM, addI32(get(FROM), i32(STEP_BYTES))),
  ]
  const step = {
    name: 'step',
    parameters: ['i64', 'i32', 'i32'],
    result: 'i64',
    locals: ['i64', 'i64'],
    body: [...repeatWhile(isBelowI32(get(FROM), get(TO)), turn), ...get(CRC)],
  } as const
  return assembleModule([step])
}

/** Adds pairs, then pairs of those: the next step waits for four additions instead of for sixteen in a row. */
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
