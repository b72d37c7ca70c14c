/** Orders text by its UTF-16 units: the same on every machine, in any locale. Negative: `a` comes first. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
