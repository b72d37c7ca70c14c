/** `1 lease`, `2 leases`, `1,000 files`: a count of at least 0 before its noun. */
export function formatCount(count: number, noun: string, plural = `${noun}s`): string {
  return `${groupDigits(count)} ${count === 1 ? noun : plural}`
}

/**
 * `1,000`: a whole number of at least 0 with commas between thousands. `toLocaleString` takes 40 ms on its first call
 * to load the rules of all languages.
 */
export function groupDigits(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}
