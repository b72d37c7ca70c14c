import { FAILURES } from '../../failure/failure-table.js'

/** A stack trace, the exit code of a failure that nobody explained, or words that this program got wrong. */
export function isCrash(code: number | null, stderr: string): boolean {
  return code === null || code === 1 || code === FAILURES.USAGE.exitCode || /^\s+at .*:\d+/m.test(stderr)
}
