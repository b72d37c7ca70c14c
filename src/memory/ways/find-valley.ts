/** Search for the lowest value over counts from 0 to `most`. */
interface ValleySearch {
  /** Counts to look at first. */
  readonly starts: readonly number[]
  readonly most: number
  /** The first stride from the best of them, and the last: counts closer together are not examined. */
  readonly stride: number
  readonly nearest: number
}

/** Walks down to the count with the lowest value: strides grow while they lead down, and shrink when they do not. */
export function findValley(
  valueAt: (count: number) => number,
  { starts, most, stride, nearest }: ValleySearch,
): number {
  let middle = starts[0] ?? 0
  let least = Number.POSITIVE_INFINITY
  const lookAt = (count: number) => {
    const value = count < 0 || count > most ? Number.POSITIVE_INFINITY : valueAt(count)
    if (value >= least) return
    least = value
    middle = count
  }
  for (const start of starts) lookAt(start)
  for (let width = stride; width >= nearest; ) {
    const from = middle
    lookAt(from + width)
    lookAt(from - width)
    width = middle === from ? Math.floor(width / 2) : width * 2
  }
  return middle
}
