import { createInterface } from 'node:readline/promises'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'

/**
 * Asks before something is deleted. `--yes` answers beforehand; without a terminal nobody can answer, so the command
 * fails with CONFIRMATION_REQUIRED instead of guessing.
 */
export async function confirm(
  question: string,
  options: { readonly isYes: boolean; readonly canDryRun?: boolean },
): Promise<boolean> {
  if (options.isYes) return true
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new DscError('CONFIRMATION_REQUIRED', `${question} There is no terminal to ask`, {
      hint: options.canDryRun ? 'add --yes, or look first with --dry-run' : 'add --yes',
    })
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  using _ = atEndNow(() => terminal.close())
  return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
}
