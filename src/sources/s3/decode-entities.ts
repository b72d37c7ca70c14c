const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text that XML means: its five named entities and those by number. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  // The arguments are those that String.replace gives: one per group.
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#([0-9]+)|([a-z]+));/g, (whole, hexadecimal, decimal, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole
    const point = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16)
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole
  })
}
