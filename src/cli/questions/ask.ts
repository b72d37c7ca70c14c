import { createInterface } from 'node:readline'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'

/** Asks a person; an empty answer means `byDefault`. */
export type Ask = (question: string, byDefault: string) => Promise<string>

/** Whether somebody at a terminal can answer. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Runs `work` with a way to ask on the terminal (on stderr, so that stdout carries only the result). */
export async function withQuestions<Value>(
  signal: AbortSignal,
  work: (ask: Ask) => Promise<Value>,
): Promise<Value> {
  // One iterator for all questions: it keeps lines that were typed ahead or pasted.
  const terminal = createInterface({ input: process.stdin, output: process.stderr, signal })
  const answers = terminal[Symbol.asyncIterator]()
  using _ = atEndNow(() => terminal.close())
  return await work(async (question, byDefault) => {
    terminal.setPrompt(`${question} [${byDefault}]: `)
    terminal.prompt()
    const answer = await answers.next()
    // Ctrl+C, Ctrl+D or a signal.
    if (answer.done) throw new DscError('INTERRUPTED', 'stopped before every question was answered')
    return answer.value.trim() || byDefault
  })
}

/** A setting that an option gives, or a person, or the default. Asks again, with the reason, where `parse` refuses. */
export async function chooseSetting<Value>(
  given: Value | undefined,
  parse: (raw: string) => Value,
  from: {
    readonly ask: Ask | undefined
    readonly question: string
    readonly byDefault: string
    readonly note: (sentence: string) => void
  },
): Promise<Value> {
  if (given !== undefined) return given
  const { ask, question, byDefault, note } = from
  try {
    return parse(ask ? await ask(question, byDefault) : byDefault)
  } catch (error) {
    if (!ask || !(error instanceof RangeError)) throw error
    note(error.message)
    return chooseSetting(given, parse, from)
  }
}
