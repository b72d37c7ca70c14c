/** Formats node names compactly, like Slurm: `gpu-[001-004,007],login`. */
export function formatNodeList(nodes: readonly string[]): string {
  const families = new Map<string, { readonly digits: string; readonly number: number }[]>()
  for (const node of new Set(nodes)) {
    const [, stem = node, digits = ''] = /^(.*?)(\d{1,15})?$/.exec(node) ?? []
    // 07 and 7 are different names, so group numbers by width.
    const key = `${stem}\0${digits.length}`
    const family = families.get(key) ?? []
    families.set(key, family)
    family.push({ digits, number: Number(digits) })
  }
  return [...families]
    .map(([key, members]) => formatFamily(key.split('\0')[0]!, members))
    .toSorted()
    .join(',')
}

function formatFamily(
  stem: string,
  members: readonly { readonly digits: string; readonly number: number }[],
): string {
  if (members.length === 1) return stem + members[0]!.digits
  const runs: { first: string; last: string; end: number }[] = []
  for (const { digits, number } of members.toSorted((a, b) => a.number - b.number)) {
    const run = runs.at(-1)
    if (run && number === run.end + 1) Object.assign(run, { last: digits, end: number })
    else runs.push({ first: digits, last: digits, end: number })
  }
  return `${stem}[${runs.map(({ first, last }) => (first === last ? first : `${first}-${last}`)).join(',')}]`
}
