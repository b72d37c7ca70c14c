import { createInterface } from 'node:readline'
import { DscError } from '../../failure/dsc-error.js'

/** Whether somebody sits at a terminal who can answer. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks a person; an empty answer is `byDefault`. */
export type Ask = (question: string, byDefault: string) => Promise<string>

/** Runs `work` with a way to ask on the terminal (on stderr, so that stdout stays the result). */
export async function withQuestions<Value>(
  signal: AbortSignal,
  work: (ask: Ask) => Promise<Value>,
): Promise<Value> {
  // One iterator for all questions: it keeps the lines that were typed ahead or pasted.
  const terminal = createInterface({ input: process.stdin, output: process.stderr, signal })
  const answers = terminal[Symbol.asyncIterator]()
  try {
    return await work(async (question, byDefault) => {
      terminal.setPrompt(`${question} [${byDefault}]: `)
      terminal.prompt()
      const answer = await answers.next()
      // Ctrl+C, Ctrl+D or a signal.
      if (answer.done) throw new DscError('INTERRUPTED', 'stopped before every question was answered')
      return answer.value.trim() || byDefault
    })
  } finally {
    terminal.close()
  }
}
