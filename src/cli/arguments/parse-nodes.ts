/** `a,b,c` → names of nodes. */
export function parseNodes(raw: string): readonly string[] {
  return raw
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}
