import { createInterface } from 'node:readline/promises'

/** Whether somebody sits at a terminal who can answer. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks on the terminal (stderr, so that stdout stays the result). An empty answer is `byDefault`. */
export async function ask(question: string, byDefault: string, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await lines.question(`${question} [${byDefault}]: `, { signal })
    return answer.trim() || byDefault
  } finally {
    lines.close()
  }
}
