import type { ServerResponse } from 'node:http'
import { describeFailure } from '../../failure/dsc-error.js'
import type { FailureAnswer } from '../../failure/failure-answer.js'
import { explainSystemError } from '../../failure/system-failure.js'
import { formatJsonLine } from '../../frames/lines.js'

/** The last line of an answer that failed. */
export interface ErrorLine {
  readonly error: FailureAnswer
}

/** A line of progress. `node`: the one that it is about, if there are several. */
export interface LineProgress {
  readonly step: string
  readonly node?: string
}

/** The signals and senders of work that is answered in lines. */
export interface LineWork {
  /** Aborts when the client hangs up, or the agent stops. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: LineProgress) => void
  /** Writes a line at once. */
  readonly write: (line: object) => void
}

const PROGRESS_INTERVAL_MS = 500
/** Steps of which only the newest line counts; every line of another step is an event. */
const STATES: ReadonlySet<string> = new Set(['listing', 'downloading', 'waiting', 'verifying', 'adopting'])
const PULSE_INTERVAL_MS = 2000

/**
 * Answers with lines of JSON: progress, then the line that `work` resolves with, or its failure. A client
 * that does not read misses lines of progress; the agent keeps none for it.
 */
export async function answerInLines(
  {
    response,
    stopping,
    note,
  }: {
    readonly response: ServerResponse
    readonly stopping: AbortSignal
    /** Writes failures to the agent's log. */
    readonly note: (sentence: string) => void
  },
  work: (options: LineWork) => Promise<object>,
): Promise<void> {
  const hungUp = new AbortController()
  response.on('close', () => hungUp.abort('the client hung up'))
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  const write = (line: object) => void response.write(formatJsonLine(line))
  const lastMs = new Map<string | undefined, number>()
  // A silent agent would look like a dead one.
  const pulse = setInterval(() => {
    if (!response.writableNeedDrain) response.write('\n')
  }, PULSE_INTERVAL_MS)
  try {
    const last = await work({
      signal: AbortSignal.any([hungUp.signal, stopping]),
      write,
      onProgress: (progress) => {
        const sinceMs = performance.now() - (lastMs.get(progress.node) ?? Number.NEGATIVE_INFINITY)
        const isEarly = sinceMs < PROGRESS_INTERVAL_MS || response.writableNeedDrain
        if (isEarly && STATES.has(progress.step)) return
        lastMs.set(progress.node, performance.now())
        write({ progress })
      },
    })
    write(last)
  } catch (error) {
    write(describeError(error, note))
  } finally {
    clearInterval(pulse)
    response.end()
  }
}

function describeError(error: unknown, note: (sentence: string) => void): ErrorLine {
  const known = explainSystemError(error)
  if (known) {
    note(`failed: ${known.message.replaceAll('\n', '; ')}${known.id ? ` (dsc why ${known.id})` : ''}`)
    return { error: describeFailure(known) }
  }
  // A bug: tell the caller, and log everything that is known.
  const { message, stack } = error as Error
  note(`failed, by a defect of dsc: ${stack ?? message}`)
  return { error: { code: 'INTERNAL', message, hint: 'the log of the agent there says where' } }
}
