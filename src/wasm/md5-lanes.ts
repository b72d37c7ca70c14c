import {
  addI32,
  type Code,
  get,
  i32,
  isBelowI32,
  load,
  loadLane,
  loadWord,
  repeatWhile,
  set,
  shiftLanes,
  simd,
  splatBits,
  store,
  type WasmFunction,
} from './assembler.js'

/** Messages that one call digests side by side. */
export const LANES = 4
/** Bytes that MD5 takes in one step. */
export const BLOCK_BYTES = 64
/** The state of all lanes: four vectors, a, b, c and d, of one word for each lane. */
export const STATE_BYTES = 64

const [NOT, AND, ANDNOT, OR, XOR, ADD] = [0x4d, 0x4e, 0x4f, 0x50, 0x51, 0xae]
const ROTATIONS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const
const WORDS = BLOCK_BYTES / 4

const [STATE, MESSAGES, END] = [0, 1, 1 + LANES]
const VARIABLES = END + 1
const BLOCK = VARIABLES + 4

/**
 * `md5(state, m0, m1, m2, m3, end)` goes on with the MD5 of four messages, whose next blocks lie at `m0` to `m3`, as far
 * as the first one lies below `end`. A step of MD5 waits for the one before it, so that a processor has time for four.
 */
export function md5Function(): WasmFunction {
  const vectors = range(4)
  const start = vectors.flatMap((index) => set(VARIABLES + index, load(get(STATE), 16 * index)))
  const block = range(WORDS).flatMap((word) => set(BLOCK + word, gatherWord(word)))
  const end = vectors.flatMap((index) => {
    const sum = add(get(VARIABLES + index), load(get(STATE), 16 * index))
    return [...set(VARIABLES + index, sum), ...store(get(STATE), get(VARIABLES + index), 16 * index)]
  })
  const next = range(LANES).flatMap((lane) =>
    set(MESSAGES + lane, addI32(get(MESSAGES + lane), i32(BLOCK_BYTES))),
  )
  return {
    name: 'md5',
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'],
    locals: Array.from({ length: 4 + WORDS }, () => 'v128' as const),
    body: [
      ...start,
      ...repeatWhile(isBelowI32(get(MESSAGES), get(END)), [
        ...block,
        ...range(64).flatMap(step),
        ...end,
        ...next,
      ]),
    ],
  }
}

/** A word of the block of each lane. */
function gatherWord(word: number): Code {
  const others = range(LANES).slice(1)
  return others.reduce(
    (vector, lane) => loadLane(get(MESSAGES + lane), vector, { offset: 4 * word, lane }),
    loadWord(get(MESSAGES), 4 * word),
  )
}

/** One of the 64 steps of RFC 1321; the four variables take turns. */
function step(index: number): Code {
  const round = index >> 4
  const [a, b, c, d] = range(4).map((place) => VARIABLES + ((place - index) & 3)) as [
    number,
    number,
    number,
    number,
  ]
  const word = [index, 5 * index + 1, 3 * index + 5, 7 * index][round]! % WORDS
  const sine = Math.floor(Math.abs(Math.sin(index + 1)) * 2 ** 32)
  const sum = add(get(BLOCK + word), splatBits(sine), get(a), ...mix(round, get(b), get(c), get(d)))
  const bits = ROTATIONS[round]![index & 3]!
  const turned = simd(OR, shiftLanes(get(a), bits), shiftLanes(get(a), bits - 32))
  return [...set(a, sum), ...set(a, add(turned, get(b)))]
}

/** The function of a round, as vectors to add; what does not need `b` comes first, as `b` is the last to be known. */
function mix(round: number, b: Code, c: Code, d: Code): readonly Code[] {
  if (round === 0) return [simd(XOR, simd(AND, simd(XOR, c, d), b), d)]
  if (round === 1) return [simd(ANDNOT, c, d), simd(AND, b, d)]
  if (round === 2) return [simd(XOR, simd(XOR, c, d), b)]
  return [simd(XOR, simd(OR, simd(NOT, d), b), c)]
}

function add(...vectors: readonly Code[]): Code {
  return vectors.reduce((sum, vector) => simd(ADD, sum, vector))
}

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index)
}
