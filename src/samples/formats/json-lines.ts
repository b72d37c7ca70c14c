import { isUtf8 } from 'node:buffer'
import type { Format } from './format.js'
import { indexRecords, LineEnds, type RecordFormat } from './scan-records.js'

/** Lines of JSON (https://jsonlines.org): each line that is not blank is a sample. */
export const JSON_LINES: Format = {
  recognition: {
    title: 'JSON lines',
    mark: /\.(jsonl|ndjson)/,
    holdsSamples: (path) => /\.(jsonl|ndjson)$/i.test(path),
    takesAnyName: true,
  },
  index: (request) => indexRecords(request, () => LINES),
}

const LINES: RecordFormat = {
  ends: new LineEnds(),
  isSkipped: isBlank,
  describe: () => ({ format: 'json' }),
  hasHeader: false,
  findFault: (line, _, rule) => {
    const isWhole = rule === 'skip' ? isJson(line) : isLikelyJson(line)
    if (!isWhole) return 'a line that is no JSON'
    return isUtf8(line) ? undefined : 'text that is not UTF-8'
  },
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte !== 0x20 && byte !== 0x09) return false
  return true
}

/** Ends of values by their beginnings: of objects, lists and texts. */
const ENDS: ReadonlyMap<number, number> = new Map([
  [0x7b, 0x7d],
  [0x5b, 0x5d],
  [0x22, 0x22],
])

/**
 * Whether a line begins and ends as JSON does: cut lines and padding with NULs do not, and parsing costs more. It judges
 * millions of lines, so it makes no strings.
 */
function isLikelyJson(line: Buffer): boolean {
  let start = 0
  let last = line.length - 1
  while (isSpace(line[start]!)) start++
  while (isSpace(line[last]!)) last--
  const end = ENDS.get(line[start]!)
  if (end !== undefined) return last > start && line[last] === end
  for (let at = start; at <= last; at++) if (!isOfWord(line[at]!)) return false
  return true
}

const isSpace = (byte: number) => byte === 0x20 || byte === 0x09 || byte === 0x0d

/** Whether a byte may be of a number or of a word such as `true` or `-Infinity`. */
function isOfWord(byte: number): boolean {
  const letter = byte | 0x20
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (letter >= 0x61 && letter <= 0x7a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  )
}

/** Python reads `NaN` and `Infinity`, too. */
const PYTHONS = /-?\b(NaN|Infinity)\b/g

function isJson(line: Buffer): boolean {
  const text = line.toString()
  try {
    JSON.parse(text)
    return true
  } catch {
    if (!PYTHONS.test(text)) return false
  }
  try {
    JSON.parse(text.replace(PYTHONS, '0'))
    return true
  } catch {
    return false
  }
}
