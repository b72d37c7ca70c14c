import { isTerminal, writeAll } from '../platform/standard-streams.js'
import { formatJsonPieces } from './json-pieces.js'

/** Where a command's words go: results to stdout, everything else to stderr. */
export interface Reporter {
  /** Whether `--json` was given: results and errors are JSON, progress is silent unless it is JSON lines. */
  readonly isJson: boolean
  /** The command's result. `formatText` is called only when people read; it returns text without a final newline. */
  result(data: unknown, formatText: () => string): void
  /** A sentence for people, on stderr; silent with `--json` and `--quiet`. */
  note(sentence: string): void
  /** A line that replaces itself on a terminal; elsewhere printed at most every 10 s. `undefined` clears it. */
  progress(line: string | undefined): void
}

const PLAIN_INTERVAL_MS = 10_000

/** Reports to this process's stdout and stderr. */
export function createReporter(options: {
  isJson: boolean
  isQuiet: boolean
  nowMs: () => number
}): Reporter {
  const isSilent = options.isJson || options.isQuiet
  const isAtTerminal = isTerminal('stderr')
  let isLineOpen = false
  let lastPlainMs = Number.NEGATIVE_INFINITY
  const clearLine = () => {
    if (isLineOpen) writeAll('stderr', '\r\x1b[2K')
    isLineOpen = false
  }
  return {
    isJson: options.isJson,
    result(data, formatText) {
      clearLine()
      if (options.isJson) {
        for (const piece of formatJsonPieces(data)) writeAll('stdout', piece)
        writeAll('stdout', '\n')
        return
      }
      const text = formatText()
      if (text !== '') writeAll('stdout', `${text}\n`)
    },
    note(sentence) {
      if (isSilent) return
      clearLine()
      writeAll('stderr', `${sentence}\n`)
    },
    progress(line) {
      if (isSilent) return
      if (isAtTerminal) {
        clearLine()
        if (line === undefined) return
        writeAll('stderr', line.slice(0, (process.stderr.columns ?? 80) - 1))
        isLineOpen = true
      } else if (line !== undefined && options.nowMs() - lastPlainMs >= PLAIN_INTERVAL_MS) {
        lastPlainMs = options.nowMs()
        writeAll('stderr', `${line}\n`)
      }
    },
  }
}
