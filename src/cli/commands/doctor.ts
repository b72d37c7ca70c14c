import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { EXIT_CODES } from '../../failure/exit-codes.js'
import { FAILURES } from '../../failure/failure-table.js'
import type { CliContext } from '../context.js'
import type { Check } from '../doctor/check.js'
import { chooseFirst, type FirstStep } from '../doctor/choose-first.js'
import { runChecks } from '../doctor/run-checks.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc doctor`: checks this machine, the configuration, the record and the sources. */
export function doctorCommand(context: CliContext) {
  return new Command('doctor')
    .option('--exit-codes', 'print the exit codes and their meanings')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc doctor\n  dsc doctor --json | jq \'.checks[] | select(.status != "ok")\'\n  dsc doctor --exit-codes',
    )
    .action(async (options) => {
      if (options.exitCodes) {
        const rows = listExitCodes()
        context.report.result<'doctor --exit-codes'>(
          { exitCodes: rows, meanings: Object.values(EXIT_CODES) },
          formatExitCodes,
        )
        return
      }
      const checks = await runChecks(context)
      const first = chooseFirst(checks)
      context.report.result<'doctor'>({ checks, first: first ?? null }, () =>
        [formatChecks(checks), '', formatFirst(first)].join('\n'),
      )
      const failures = checks.filter(({ status }) => status === 'failed')
      if (failures.length === 0) return
      throw new DscError(
        'DOCTOR_FAILED',
        `${failures.length} of ${checks.length} checks failed: ${failures.map(({ name }) => name).join(', ')}`,
        { hint: failures.find(({ hint }) => hint !== undefined)?.hint },
      )
    })
}

/** Every failure with its exit code, in the order of the codes. */
export function listExitCodes(): { exitCode: number; code: string; meaning: string; isRetryable: boolean }[] {
  const failures = Object.entries(FAILURES).map(([code, { exitCode, meaning, isRetryable }]) => ({
    exitCode,
    code,
    meaning,
    isRetryable,
  }))
  return [
    { ...EXIT_CODES.success, code: 'OK', isRetryable: false },
    { ...EXIT_CODES.internal, code: 'INTERNAL', isRetryable: false },
    ...failures,
  ].toSorted((a, b) => a.exitCode - b.exitCode)
}

/** Each exit code with its meaning, then each failure with its exit code. */
function formatExitCodes(): string {
  return [
    alignColumns(Object.values(EXIT_CODES).map(({ exitCode, meaning }) => [String(exitCode), meaning])),
    '',
    alignColumns(listExitCodes().map(({ exitCode, code, meaning }) => [String(exitCode), code, meaning])),
  ].join('\n')
}

const MARKS = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: 'skipped' } as const

function formatChecks(checks: readonly Check[]): string {
  return alignColumns(
    checks.flatMap(({ name, status, detail, hint }) => {
      const [first = '', ...rest] = detail.split(/\n\s*/)
      const below = hint === undefined ? rest : [...rest, `try: ${hint}`]
      return [[MARKS[status], name, first], ...below.map((line) => ['', '', line])]
    }),
  )
}

function formatFirst(first: FirstStep | undefined): string {
  if (first === undefined) return 'No check failed: dsc is ready.'
  const [remedy] = first.remedy.split('\n')
  return `Fix first: ${remedy} (${first.check})`
}
