import { compareKeys } from '../../model/compare-keys.js'

/** Keys are unlikely to have code points outside of this range. */
const LEAST = 0x20
const MOST = 0x7e

/** A part of a key space during its listing. Its keys are above `after` and up to `end`. */
interface OpenRange {
  readonly after: string
  /** Undefined: to the end of the key space. */
  readonly end: string | undefined
  /** The first key of the whole listing: keys vary at the positions where later keys differ from it. */
  readonly firstKey: string
  /** The greatest code point seen at each position of keys. */
  readonly greatest: readonly number[]
}

/**
 * Guesses a key that splits a range into about equal parts: the keys above `after` and up to it, and those above it.
 * Undefined when it finds no such key. A bad guess costs one request that finds nothing above it.
 */
export function planSplit(range: OpenRange): string | undefined {
  const end = range.end ?? guessEnd(range)
  if (end === undefined || compareKeys(range.after, end) >= 0) return undefined
  const split = findMiddle(toCodePoints(range.after), toCodePoints(end), range.greatest)
  if (split === undefined || compareKeys(range.after, split) >= 0) return undefined
  return range.end !== undefined && compareKeys(split, range.end) >= 0 ? undefined : split
}

/**
 * Up to `parts - 1` evenly spread folders from a listing by delimiter, as borders between parts of the key space above
 * `after`. Any strings would do: the result of the listing does not depend on them.
 */
export function planBorders(folders: readonly string[], after: string, parts: number): readonly string[] {
  const usable = [...new Set(folders)].filter((folder) => compareKeys(folder, after) > 0).sort(compareKeys)
  const borders = Math.min(usable.length, parts - 1)
  return Array.from({ length: borders }, (_, index) => usable[Math.floor((index * usable.length) / borders)]!)
}

/**
 * The number of parts, up to `most`, worth splitting the rest into, at a page each: a part of less than a page would
 * fetch the keys beyond its end for nothing. Guessed from the folders that are left and the keys in those already
 * listed.
 */
export function planPartCount(
  folders: readonly string[],
  listed: { readonly keys: readonly string[]; readonly pages: number },
  most: number,
): number {
  const depth = folders[0]?.split('/').length
  if (depth === undefined) return 1
  const behind = new Set(listed.keys.map((key) => key.split('/', depth - 1).join('/')))
  const keysLeft = (folders.length * listed.keys.length) / behind.size
  return Math.max(1, Math.min(most, Math.ceil((keysLeft * listed.pages) / listed.keys.length)))
}

/** Notes the code points of a few keys of a page. */
export function noteGreatest(greatest: number[], keys: readonly string[]): void {
  for (const key of keys) {
    toCodePoints(key).forEach((point, position) => {
      if (point > (greatest[position] ?? 0)) greatest[position] = point
    })
  }
}

/** Where numbers or words vary, the greatest number or word of that length: `a-00017` → `a-99999`. */
function guessEnd({ after, firstKey }: OpenRange): string | undefined {
  const points = toCodePoints(after)
  const first = toCodePoints(firstKey)
  const changeAt = commonLength(points, first)
  if (changeAt >= points.length) return undefined
  const greatest = greatestOfClass(points[changeAt]!)
  let begin = changeAt
  while (begin > 0 && greatestOfClass(points[begin - 1]!) === greatest) begin -= 1
  return fromCodePoints([
    ...points.slice(0, begin),
    ...Array.from({ length: changeAt - begin + 1 }, () => greatest),
    MOST,
  ])
}

function greatestOfClass(point: number): number {
  for (const [least, most] of ['09', 'AZ', 'az'].map(toCodePoints) as [number, number][])
    if (point >= least && point <= most) return most
  return Math.max(point, MOST)
}

function findMiddle(
  after: readonly number[],
  end: readonly number[],
  greatest: readonly number[],
): string | undefined {
  const at = commonLength(after, end)
  const low = after[at] ?? LEAST
  const high = end[at] ?? LEAST
  if (high - low >= 2) return fromCodePoints([...after.slice(0, at), middle(low, high)])
  // `end` continues below the next higher code point: that is a border itself.
  if (high > low && end.length > at + 1) return fromCodePoints(end.slice(0, at + 1))
  for (let deeper = at + 1; deeper <= after.length; deeper += 1) {
    const lowest = after[deeper] ?? LEAST
    const highest = (greatest[deeper] ?? MOST) + 1
    if (highest - lowest >= 2) {
      const head = Array.from({ length: deeper }, (_, index) => after[index] ?? LEAST)
      return fromCodePoints([...head, middle(lowest, highest)])
    }
  }
  return undefined
}

/** A code point between two, never half of a surrogate pair. */
function middle(low: number, high: number): number {
  const point = Math.ceil((low + high) / 2)
  return point >= 0xd800 && point <= 0xdfff ? 0xd7ff : point
}

function commonLength(a: readonly number[], b: readonly number[]): number {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1
  return length
}

function toCodePoints(text: string): number[] {
  return Array.from(text, (character) => character.codePointAt(0)!)
}

function fromCodePoints(points: readonly number[]): string {
  return points.map((point) => String.fromCodePoint(point)).join('')
}
