/** Dots of a braille cell from the bottom up, in the left and in the right half. */
const LEFT = [0x40, 0x04, 0x02, 0x01] as const
const RIGHT = [0x80, 0x20, 0x10, 0x08] as const
const DOTS = 4

/**
 * Draws the values as a filled curve of braille, `rows` strings of `width` characters, the upper first. Two values
 * share a cell; more are thinned out by their maximum, so that a peak stays. `most` has the full height; every value has
 * one dot, anything above 0 two.
 */
export function drawGraph(
  values: readonly number[],
  { width, rows, most }: { readonly width: number; readonly rows: number; readonly most: number },
): readonly string[] {
  const heights = thinOut(values, width * 2).map((value) => {
    if (value <= 0) return 1
    return Math.min(rows * DOTS, Math.max(2, Math.round((value / Math.max(most, 1)) * rows * DOTS)))
  })
  const missing = width * 2 - heights.length
  const heightAt = (column: number) => heights[column - missing] ?? 0
  return Array.from({ length: rows }, (_, row) => {
    const floor = (rows - 1 - row) * DOTS
    return Array.from({ length: width }, (_, cell) =>
      String.fromCodePoint(
        0x2800 + sumDots(LEFT, heightAt(cell * 2) - floor) + sumDots(RIGHT, heightAt(cell * 2 + 1) - floor),
      ),
    ).join('')
  })
}

function sumDots(half: readonly number[], height: number): number {
  return half.slice(0, Math.max(0, height)).reduce((sum, dot) => sum + dot, 0)
}

/** At most `count` values: each the largest of its stretch. */
function thinOut(values: readonly number[], count: number): readonly number[] {
  if (values.length <= count) return values
  return Array.from({ length: count }, (_, at) => {
    const from = Math.floor((at * values.length) / count)
    const to = Math.max(from + 1, Math.floor(((at + 1) * values.length) / count))
    return Math.max(...values.slice(from, to))
  })
}
