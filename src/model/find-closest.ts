/** The known word that is at most a third of its letters away from `word`, or undefined. */
export function findClosest(word: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance)
  return best && best.distance <= Math.max(1, Math.ceil(word.length / 3)) ? best.candidate : undefined
}

/** Optimal string alignment distance: letters to add, remove or replace, and neighbours to swap. */
function editDistance(a: string, b: string): number {
  let beforePrevious: readonly number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwapped ? beforePrevious[j - 2]! + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(replaced, previous[j]! + 1, row[j - 1]! + 1, swapped))
    }
    beforePrevious = previous
    previous = row
  }
  return previous[b.length]!
}
