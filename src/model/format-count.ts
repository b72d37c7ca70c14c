/** `1 lease`, `2 leases`, `1,000 files`: a count of at least 0 before its noun. */
export function formatCount(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? noun : plural}`
}
