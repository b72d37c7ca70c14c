import type { Format } from './format.js'
import { indexRecords, type RecordEnds, type WindowPlace } from './scan-records.js'

const LINE_FEED = 0x0a

/** Lines of JSON (https://jsonlines.org): each line that is not blank is a sample. */
export const JSON_LINES: Format = {
  recognition: {
    title: 'JSON lines',
    holdsSamples: (path) => /\.(jsonl|ndjson)$/i.test(path),
    takesAnyName: true,
  },
  index: (request) =>
    indexRecords(request, {
      makeEnds: () => new LineEnds(),
      isSkipped: isBlank,
      describe: () => ({ format: 'json' }),
      hasHeader: false,
    }),
}

class LineEnds implements RecordEnds {
  #window = Buffer.alloc(0)
  #isLast = false

  load(window: Buffer<ArrayBuffer>, place: WindowPlace): void {
    this.#window = window
    this.#isLast = place === 'last'
  }

  find(start: number): number {
    const end = this.#window.indexOf(LINE_FEED, start)
    return end < 0 && this.#isLast ? this.#window.length : end
  }
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte !== 0x20 && byte !== 0x09) return false
  return true
}
