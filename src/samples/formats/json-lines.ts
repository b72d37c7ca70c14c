import { isUtf8 } from 'node:buffer'
import type { Format } from './format.js'
import { indexRecords, LineEnds, type RecordFormat } from './scan-records.js'

/** Lines of JSON (https://jsonlines.org): each line that is not blank is a sample. */
export const JSON_LINES: Format = {
  recognition: {
    title: 'JSON lines',
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

/** Ends of values by their beginnings; any other value is one word or a number. */
const ENDS: Readonly<Record<string, string>> = { '{': '}', '[': ']', '"': '"' }
const WORD = /^[-\w.+]+$/

/** Whether a line begins and ends as JSON does: cut lines and padding with NULs do not, and parsing costs more. */
function isLikelyJson(line: Buffer): boolean {
  const text =
    line.length > 64
      ? `${line.toString('latin1', 0, 32)}${line.toString('latin1', line.length - 32)}`
      : line.toString('latin1')
  const trimmed = text.trim()
  const end = ENDS[trimmed[0]!]
  return end === undefined ? WORD.test(trimmed) : trimmed.length > 1 && trimmed.endsWith(end)
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
