const BITS_OF_UNIT: Readonly<Record<string, number>> = {
  '': 8,
  B: 8,
  kB: 8e3,
  MB: 8e6,
  GB: 8e9,
  TB: 8e12,
  KiB: 8 * 2 ** 10,
  MiB: 8 * 2 ** 20,
  GiB: 8 * 2 ** 30,
  TiB: 8 * 2 ** 40,
  bit: 1,
  kbit: 1e3,
  Mbit: 1e6,
  Gbit: 1e9,
  Tbit: 1e12,
}

/** The input of `parseByteRate`, as a regular expression without flags (so that a JSON Schema can contain it). */
export const BYTE_RATE_PATTERN =
  '^\\s*[0-9]+(\\.[0-9]+)?\\s*([kKMGT]?B|[kKMGT]iB|[kKMGT]?bit|[kKMGT]bps)?(/s)?\\s*$'

/**
 * Parses a rate as bytes per second: `200MiB/s`, `200MB`, `1Gbit/s`, `10Gbps`, `4096`. The unit is case-sensitive, and
 * a bare `b` is refused: half of its readers take `Mb` for megabits, the others for megabytes. Throws a RangeError with
 * what was expected and found.
 */
export function parseByteRate(raw: string | number): number {
  const text = String(raw)
  const match = new RegExp(BYTE_RATE_PATTERN).exec(text) && /^\s*([0-9.]+)\s*([a-zA-Z]*)/.exec(text)
  const unit = match?.[2]
    ?.replace(/bps$/, 'bit')
    .replace(/^K(?!i)/, 'k')
    .replace(/^k(?=i)/, 'K')
  const bytes = match ? Math.floor((Number(match[1]) * BITS_OF_UNIT[unit!]!) / 8) : Number.NaN
  if (!Number.isSafeInteger(bytes) || bytes < 1)
    throw new RangeError(`expected a rate such as 200MiB/s, 500MB or 1Gbit/s, found ${JSON.stringify(raw)}`)
  return bytes
}
