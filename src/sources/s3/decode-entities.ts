const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Decodes XML text: the five named entities and numeric ones. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  // The arguments are those of String.replace: one per group.
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#([0-9]+)|([a-z]+));/g, (whole, hexadecimal, decimal, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole
    const point = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16)
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole
  })
}
