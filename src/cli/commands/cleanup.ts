import { Command } from 'commander'
import { formatByteSize } from '../../model/byte-size.js'
import { parseDuration } from '../../model/duration.js'
import { findUserName } from '../../platform/this-user.js'
import { keepYoungGenerationSmall } from '../../platform/young-generation.js'
import type { CleanUpAction } from '../../stage/plan/plan-clean-up.js'
import { alignColumns } from '../align-columns.js'
import type { CliContext } from '../context.js'
import { argument } from '../parse-argument.js'

/** An interrupted staging is worth keeping for the task that will come back for it. */
const DEFAULT_ABANDONED_AFTER_MS = 3_600_000

interface CleanUpOptions {
  readonly dryRun?: true
  readonly abandonedAfter?: number
  readonly resume?: true
  readonly printCron?: true
  readonly printSystemd?: true
}

/** `dsc cleanup`: brings record, disk and policy together again; for cron, and safe beside anything. */
export function cleanupCommand(context: CliContext): Command {
  return new Command('cleanup')
    .description('expire dead leases, finish what was interrupted, bring the node under its policy')
    .option('--dry-run', 'say what would be done and why; change nothing')
    .option(
      '--abandoned-after <duration>',
      'remove a staging that nobody works on after this time (default: 1h)',
      argument(parseDuration),
    )
    .option('--resume', 'finish abandoned stagings instead of leaving or removing them')
    .option('--print-cron', 'print a crontab line to install')
    .option('--print-systemd', 'print a systemd service and timer to install')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc cleanup --dry-run\n  dsc cleanup --print-cron | sudo tee /etc/cron.d/dsc\n  dsc cleanup --abandoned-after 0s',
    )
    .action(async (options: CleanUpOptions) => {
      if (options.printCron || options.printSystemd) {
        const { formatCron, formatSystemd } = await import('../cleanup-units.js')
        const { filePath } = await context.config()
        const call = { dsc: process.argv[1]!, config: filePath, user: findUserName(context.environment) }
        const text = options.printCron ? formatCron(call) : formatSystemd(call)
        context.report.result({ text }, () => text.trimEnd())
        return
      }
      keepYoungGenerationSmall()
      const cache = await context.openCache()
      const { applyCleanUp, planCleanUpOf } = await import('../../stage/clean-up.js')
      const { saveNode } = await import('../../stage/save-node.js')
      await saveNode(cache)
      if (options.resume && !options.dryRun) {
        const { resumeAbandoned } = await import('../../stage/resume-abandoned.js')
        for (const dataset of await resumeAbandoned(cache, context.signal)) {
          context.report.note(`finished the staging of ${dataset}`)
        }
      }
      const plan = await planCleanUpOf(cache, {
        abandonedAfterMs: options.abandonedAfter ?? DEFAULT_ABANDONED_AFTER_MS,
      })
      const actions = options.dryRun ? plan : await applyCleanUp(cache, plan)
      const fields = { dryRun: options.dryRun === true, actions: actions.map(actionFields) }
      context.report.result(fields, () => formatActions(actions, options.dryRun === true))
    })
}

function actionFields(action: CleanUpAction) {
  const { kind, reason } = action
  switch (action.kind) {
    case 'expire-lease':
      return { kind, reason, task: action.lease.task, leaseId: action.lease.leaseId }
    case 'finish-eviction':
    case 'forget-copy':
    case 'evict':
      return {
        kind,
        reason,
        dataset: action.copy.dataset,
        version: action.copy.version,
        bytes: action.copy.chargedBytes,
      }
    case 'empty-trash':
    case 'remove-directory':
    case 'adopt-directory':
      return { kind, reason, path: action.path }
  }
}

const VERBS_DONE: Readonly<Record<CleanUpAction['kind'], readonly [string, string]>> = {
  'expire-lease': ['expired the lease of', 'would expire the lease of'],
  'finish-eviction': ['finished evicting', 'would finish evicting'],
  'empty-trash': ['removed', 'would remove'],
  'remove-directory': ['removed', 'would remove'],
  'adopt-directory': ['put into the record', 'would put into the record'],
  'forget-copy': ['forgot', 'would forget'],
  evict: ['evicted', 'would evict'],
}

function formatActions(actions: readonly CleanUpAction[], isDryRun: boolean): string {
  if (actions.length === 0) return 'nothing to clean up'
  return alignColumns(
    actions.map((action) => [
      `${VERBS_DONE[action.kind][isDryRun ? 1 : 0]} ${subjectOf(action)}`,
      `(${action.reason})`,
    ]),
  )
}

function subjectOf(action: CleanUpAction): string {
  if ('path' in action) return action.path
  if ('lease' in action) return action.lease.task
  return `${action.copy.dataset} ${formatByteSize(action.copy.chargedBytes)}`
}
