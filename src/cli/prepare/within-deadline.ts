import { DscError, describeFailure } from '../../failure/dsc-error.js'
import type { CliContext } from '../context.js'

/** How long a command may clean up after the deadline, in ms, before it is abandoned. */
const ORDER_MS = 3000

/**
 * Runs `work` with a context whose signal aborts at the deadline. Rejects with DEADLINE_PASSED then, at most three
 * seconds after the deadline, no matter what `work` does.
 */
export async function runWithinDeadline(
  context: CliContext,
  deadlineMs: number | undefined,
  work: (context: CliContext) => Promise<void>,
): Promise<void> {
  if (deadlineMs === undefined) return work(context)
  const over = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const passed = () =>
    new DscError('DEADLINE_PASSED', `not done within ${deadlineMs / 1000} s`, {
      hint: 'what was staged so far is kept: the next dsc prepare goes on from there',
    })
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      over.abort('the deadline')
      timer = setTimeout(() => reject(passed()), ORDER_MS)
    }, deadlineMs)
  })
  try {
    const signal = AbortSignal.any([context.signal, over.signal])
    await Promise.race([work({ ...context, signal }), late])
  } catch (error) {
    throw over.signal.aborted ? passed() : error
  } finally {
    clearTimeout(timer)
  }
}

/**
 * For a Slurm prolog, where a failed command would take the node out of service: reports failures, but exits with 0 all
 * the same.
 */
export async function runAsProlog(
  context: CliContext,
  dataset: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof DscError)) throw error
    process.stderr.write(`dsc: ${dataset} is not staged, the job starts without it: ${error.message}\n`)
    context.report.result<'prepare --prolog'>(
      { dataset, path: null, error: describeFailure(error) },
      () => '',
    )
    // Something may still wait for a server that does not answer, but nothing is worth waiting for any more.
    process.exit(0)
  }
}
