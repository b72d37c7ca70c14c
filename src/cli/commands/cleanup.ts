import { Command } from 'commander'
import type { Cache } from '../../cache/cache.js'
import type { CleanUpAction } from '../../cache/upkeep/plan-clean-up.js'
import { formatByteSize } from '../../model/byte-size.js'
import { parseDuration } from '../../model/duration.js'
import { findOwnCommand } from '../../platform/own-command.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import { findUserName } from '../../platform/this-user.js'
import type { CleanUpAnswer, TextAnswer } from '../answers/cache-answers.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

interface CleanUpOptions {
  readonly dryRun?: true
  readonly abandonedAfter?: number
  readonly resume?: true
  readonly printCron?: true
  readonly printSystemd?: true
}

/** `dsc cleanup`: brings record, disk and limits back in line; for cron, and safe to run beside anything. */
export function cleanupCommand(context: CliContext): Command {
  return new Command('cleanup')
    .description('end dead leases, remove abandoned downloads, enforce limits')
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
    .action(async (options: CleanUpOptions) => {
      if (options.printCron || options.printSystemd) {
        const { formatCron, formatSystemd } = await import('../units/cleanup-units.js')
        const { filePath } = await context.config()
        const call = { dsc: findOwnCommand(), config: filePath, user: findUserName(context.environment) }
        const text = options.printCron ? formatCron(call) : formatSystemd(call)
        const answer: TextAnswer = { dsc: 1, text }
        context.report.result(answer, () => text.trimEnd())
        return
      }
      keepHeapSmall()
      const cache = await context.openCache()
      const { ABANDONED_AFTER_MS, cleanUpNode } = await import('../../cache/upkeep/keep-clean.js')
      if (options.resume && !options.dryRun) {
        const { resumeAbandoned } = await import('../../cache/prepare/resume-abandoned.js')
        for (const dataset of await resumeAbandoned(cache, context.signal)) {
          context.report.note(`finished the staging of ${dataset}`)
        }
      }
      const abandonedAfterMs = options.abandonedAfter ?? ABANDONED_AFTER_MS
      const { historyMs } = await context.config()
      const actions = options.dryRun
        ? await planOnly(cache, abandonedAfterMs)
        : await cleanUpNode(cache, {
            abandonedAfterMs,
            historyMs,
            signal: context.signal,
            by: findUserName(context.environment),
          })
      const answer: CleanUpAnswer = {
        dsc: 1,
        isDryRun: options.dryRun === true,
        actions: actions.map(describeAction),
      }
      context.report.result(answer, () => formatActions(actions, options.dryRun ? 'planned' : 'done'))
    })
}

async function planOnly(cache: Cache, abandonedAfterMs: number): Promise<readonly CleanUpAction[]> {
  const { planCleanUpOf } = await import('../../cache/upkeep/clean-up.js')
  return planCleanUpOf(cache, { abandonedAfterMs })
}

function describeAction(action: CleanUpAction): CleanUpAnswer['actions'][number] {
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
