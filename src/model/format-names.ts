/** `a, b, c`; beyond `shown` names, counts the rest: `a, b and 7 more`. */
export function formatNames(names: readonly string[], shown: number): string {
  const more = names.length - shown
  return `${names.slice(0, shown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
