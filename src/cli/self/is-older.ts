/** Whether version `a` precedes `b`: numbers by value, and 1.0.0-rc.1 before 1.0.0. */
export function isOlder(a: string, b: string): boolean {
  const [first, second] = [a, b].map(split)
  const order = compare(first!.core, second!.core)
  if (order !== 0) return order < 0
  if (first!.early === '' || second!.early === '') return first!.early > second!.early
  return compare(first!.early, second!.early) < 0
}

function split(version: string): { readonly core: string; readonly early: string } {
  const [core = '', ...early] = version.replace(/\+.*/, '').split('-')
  return { core, early: early.join('-') }
}

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
