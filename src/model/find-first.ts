/**
 * The first of the places 0 to `count` − 1 from which on `isReached` holds, by halving; `count` if it holds nowhere. It
 * must not hold at a place before one where it does not.
 */
export function findFirst(count: number, isReached: (at: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}
