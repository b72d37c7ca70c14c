import type { Narrator } from '../../cache/surroundings.js'
import { redactText } from '../../failure/redact.js'
import { isLoggedToFile, log } from '../../log/log.js'
import { isTerminal, writeAll } from '../../platform/standard-streams.js'
import { chooseGlyphs } from '../../tui/view/text/glyphs.js'
import type { ANSWERS, AnswerOf } from '../answers/answer-schemas.js'
import { fitProgress } from './fit-progress.js'
import { formatJsonPieces } from './json-pieces.js'

/**
 * Where a command's output goes: results to stdout, everything else to stderr. Notes and warnings are silent with
 * `--json` and `--quiet`; progress is a line with a bar on a terminal, elsewhere one every 10 % or 30 s.
 */
export interface Reporter extends Narrator {
  /** Whether `--json` was given: results and errors are JSON; progress is silent unless it is JSON lines. */
  readonly isJson: boolean
  /**
   * The command's result, printed as is with `--json`: one of its `Words`. `formatText` is called only if people read the
   * output; it returns text without a final newline.
   */
  result<Words extends keyof typeof ANSWERS>(answer: AnswerOf<Words>, formatText: () => string): void
  /** The command's result in pieces, if it is too long to be in memory at once; the last piece ends the last line. */
  stream(pieces: AsyncIterable<string> | Iterable<string>): Promise<void>
}

/** Time between progress lines in a log, in ms: usually, and at least (while 10 % take only a moment). */
const PLAIN_INTERVAL_MS = 30_000
const MIN_PLAIN_INTERVAL_MS = 1000

/** Reports to this process's stdout and stderr. */
export function createReporter(options: {
  isJson: boolean
  isQuiet: boolean
  nowMs: () => number
}): Reporter {
  const isSilent = options.isJson || options.isQuiet
  let isAtTerminal: boolean | undefined // asked at the first progress: it costs 4 ms, and short commands have none
  const glyphs = chooseGlyphs(process.env)
  let isLineOpen = false
  let lastPlain = { atMs: Number.NEGATIVE_INFINITY, tenths: 0 }
  const clearLine = () => {
    if (isLineOpen) writeAll('stderr', '\r\x1b[2K')
    isLineOpen = false
  }
  const note = (sentence: string) => {
    if (isLoggedToFile()) log('verbose', sentence)
    if (isSilent) return
    clearLine()
    writeAll('stderr', `${redactText(sentence)}\n`)
  }
  return {
    isJson: options.isJson,
    result(answer, formatText) {
      clearLine()
      if (options.isJson) {
        for (const piece of formatJsonPieces({ dsc: 1, ...answer })) writeAll('stdout', redactText(piece))
        writeAll('stdout', '\n')
        return
      }
      const text = formatText()
      if (text !== '') writeAll('stdout', `${redactText(text)}\n`)
    },
    async stream(pieces) {
      clearLine()
      for await (const piece of pieces) writeAll('stdout', redactText(piece))
    },
    note,
    warn: note,
    progress(text, doneRatio) {
      if (isSilent) return
      const line = text === undefined ? undefined : redactText(text)
      isAtTerminal ??= isTerminal('stderr')
      if (isAtTerminal) {
        clearLine()
        if (line === undefined) return
        const width = Math.max(2, process.stderr.columns || 80) - 1
        writeAll('stderr', fitProgress(line, { doneRatio, width, glyphs }))
        isLineOpen = true
        return
      }
      if (line === undefined) return
      const atMs = options.nowMs()
      const tenths = Math.floor((doneRatio ?? 0) * 10)
      const waitMs = tenths > lastPlain.tenths ? MIN_PLAIN_INTERVAL_MS : PLAIN_INTERVAL_MS
      if (atMs - lastPlain.atMs < waitMs) return
      lastPlain = { atMs, tenths }
      writeAll('stderr', `${line}\n`)
    },
  }
}
