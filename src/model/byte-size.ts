const BYTES_OF_UNIT: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  pb: 1e15,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  pib: 2 ** 50,
}
const DISPLAYED = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** The input of `parseByteSize`, as a regular expression without flags (so that a JSON Schema can contain it). */
export const BYTE_SIZE_PATTERN = '^\\s*[0-9]+(\\.[0-9]+)?\\s*([kKmMgGtTpP]?[bB]|[kKmMgGtTpP][iI][bB])?\\s*$'

/**
 * Parses a number of bytes: `50GiB` (powers of 1024), `10GB` (powers of 1000), `1.5 TiB`, `4096`. Refuses a bare `G`:
 * half of the tools mean GB, the others GiB. Throws a RangeError with what was expected and found.
 */
export function parseByteSize(raw: string | number): number {
  const text = String(raw)
  const match = new RegExp(BYTE_SIZE_PATTERN).test(text) && /^\s*([0-9.]+)\s*([a-z]*)\s*$/i.exec(text)
  const bytes = match
    ? Math.round(Number(match[1]) * BYTES_OF_UNIT[match[2]?.toLowerCase() || 'b']!)
    : Number.NaN
  if (!Number.isSafeInteger(bytes)) {
    throw new RangeError(`expected a byte size such as 50GiB, 10GB or 4096, found ${JSON.stringify(raw)}`)
  }
  return bytes
}

/** Formats a number of bytes for people, to three digits, in powers of 1024: `512 B`, `1.5 KiB`, `50 GiB`. */
export function formatByteSize(bytes: number): string {
  let value = Math.abs(bytes)
  let unit = 0
  // 1023.5 would print as 1024: the next unit is shorter.
  while (value >= 1023.5 && unit < DISPLAYED.length - 1) {
    value /= 1024
    unit += 1
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
  const text = value.toFixed(digits)
  return `${bytes < 0 ? '-' : ''}${digits > 0 ? text.replace(/\.?0+$/, '') : text} ${DISPLAYED[unit]}`
}

/** Formats a number of bytes so that `parseByteSize` returns the same: `1.5GiB`, `1048580KiB`, `4097`. */
export function formatExactSize(bytes: number): string {
  const text = formatByteSize(bytes).replace(' ', '')
  if (parseByteSize(text) === bytes) return text
  const unit = ['TiB', 'GiB', 'MiB', 'KiB'].find((name) => bytes % parseByteSize(`1${name}`) === 0)
  return unit ? `${bytes / parseByteSize(`1${unit}`)}${unit}` : String(bytes)
}
