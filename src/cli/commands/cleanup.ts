import { Command } from 'commander'
import type { CleanUpAction } from '../../cache/upkeep/plan-clean-up.js'
import { formatByteSize } from '../../model/byte-size.js'
import { parseDuration } from '../../model/duration.js'
import { findOwnCommand } from '../../platform/own-command.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import { findUserName } from '../../platform/this-user.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc cleanup`: brings record, disk and limits back in line; for cron, and safe to run beside anything. */
export function cleanupCommand(context: CliContext) {
  return new Command('cleanup')
    .option('--dry-run', 'show what would be done, and why')
    .option(
      '--abandoned-after <duration>',
      'remove abandoned downloads after this time (default: 1h)',
      argument(parseDuration),
    )
    .option('--resume', 'finish abandoned downloads instead of removing them')
    .option('--print-cron', 'print a crontab line')
    .option('--print-systemd', 'print a systemd service and timer')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc cleanup --dry-run\n  dsc cleanup --print-cron | sudo tee /etc/cron.d/dsc\n  dsc cleanup --abandoned-after 0s',
    )
    .action(async (options) => {
      if (options.printCron || options.printSystemd) {
        const { formatCron, formatSystemd } = await import('../units/cleanup-units.js')
        const { filePath } = await context.config()
        const call = { dsc: findOwnCommand(), config: filePath, user: findUserName(context.environment) }
        const text = options.printCron ? formatCron(call) : formatSystemd(call)
        context.report.result<'cleanup --print-systemd'>({ text }, () => text.trimEnd())
        return
      }
      keepHeapSmall()
      const api = await context.openApi()
      const { actions, resumed } = await api.cleanUp(
        {
          isDryRun: options.dryRun === true,
          isResumed: options.resume === true,
          abandonedAfterMs: options.abandonedAfter,
          by: findUserName(context.environment),
        },
        { signal: context.signal },
      )
      for (const dataset of resumed) context.report.note(`finished the staging of ${dataset}`)
      const answer: AnswerOf<'cleanup'> = {
        isDryRun: options.dryRun === true,
        actions: actions.map(describeAction),
      }
      context.report.result(answer, () => formatActions(actions, options.dryRun ? 'planned' : 'done'))
    })
}

function describeAction(action: CleanUpAction): AnswerOf<'cleanup'>['actions'][number] {
  const { reason } = action
  switch (action.kind) {
    case 'expire-lease':
      return { kind: action.kind, reason, task: action.lease.task, leaseId: action.lease.leaseId }
    case 'finish-eviction':
    case 'forget-copy':
    case 'evict':
      return {
        kind: action.kind,
        reason,
        dataset: action.copy.dataset,
        version: action.copy.version,
        diskBytes: action.copy.chargedBytes,
      }
    case 'empty-trash':
    case 'remove-directory':
    case 'adopt-directory':
    case 'leave':
      return { kind: action.kind, reason, path: action.path }
  }
}

type Tense = 'done' | 'planned'

const VERBS: Readonly<Record<CleanUpAction['kind'], Readonly<Record<Tense, string>>>> = {
  'expire-lease': { done: 'expired the lease of', planned: 'would expire the lease of' },
  'finish-eviction': { done: 'finished evicting', planned: 'would finish evicting' },
  'empty-trash': { done: 'removed', planned: 'would remove' },
  'remove-directory': { done: 'removed', planned: 'would remove' },
  'adopt-directory': { done: 'recorded', planned: 'would record' },
  leave: { done: 'left', planned: 'would leave' },
  'forget-copy': { done: 'forgot', planned: 'would forget' },
  evict: { done: 'evicted', planned: 'would evict' },
}

function formatActions(actions: readonly CleanUpAction[], tense: Tense): string {
  if (actions.length === 0) return 'nothing to clean up'
  return alignColumns(
    actions.map((action) => [`${VERBS[action.kind][tense]} ${subjectOf(action)}`, `(${action.reason})`]),
  )
}

function subjectOf(action: CleanUpAction): string {
  if ('path' in action) return action.path
  if ('lease' in action) return action.lease.task
  return `${action.copy.dataset} ${formatByteSize(action.copy.chargedBytes)}`
}
