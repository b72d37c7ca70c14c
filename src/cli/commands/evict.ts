import { Command } from 'commander'
import type { Evicted } from '../../cache/eviction/evict-copies.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize, parseByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import { findUserName } from '../../platform/this-user.js'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'
import { confirm } from '../questions/confirm.js'

/** `dsc evict`: deletes idle copies by name, or the least recently used ones of at least a size. */
export function evictCommand(context: CliContext) {
  return new Command('evict')
    .argument('[datasets...]', 'datasets to evict, by name or URL')
    .option(
      '--free <size>',
      'evict the least recently used, at least this much of them',
      argument(parseByteSize),
    )
    .option('--dry-run', 'show what would be evicted')
    .option('--yes', 'do not ask')
    .option('--no-undo', 'free the disk at once, so that `dsc undo` cannot bring them back')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc evict flowers\n  dsc evict --free 200GiB --dry-run\n  dsc evict flowers birds --yes',
    )
    .action(async (named, options) => {
      if ((named.length === 0) === (options.free === undefined)) {
        throw new DscError('USAGE', 'expected either datasets or --free <size>', { hint: 'dsc evict --help' })
      }
      const names: string[] = []
      for (const word of named) names.push(await requireKnownDataset(context, word, 'dsc evict'))
      const selection =
        options.free === undefined
          ? { kind: 'datasets' as const, names }
          : { kind: 'free' as const, bytes: options.free }
      const api = await context.openApi()
      if (options.dryRun) {
        const plan = await api.planEviction(selection, { isOwn: false })
        context.report.result(
          describeEviction(plan, { isDryRun: true }),
          () => `would evict\n${formatEviction(plan)}`,
        )
        return
      }
      const plan = await api.planEviction(selection, { isOwn: true })
      if (plan.victims.length > 0) {
        const isAgreed = await confirm(
          `Delete ${formatCount(plan.victims.length, 'copy', 'copies')} (${formatByteSize(plan.freedBytes)}) from node ${(await context.config()).node}?`,
          { isYes: options.yes === true, canDryRun: true },
        )
        if (!isAgreed)
          throw new DscError('CONFIRMATION_REQUIRED', 'nothing was deleted', {
            hint: 'answer y, or add --yes',
          })
      }
      const by = options.undo ? findUserName(context.environment) : undefined
      const done = await api.evict(selection, { by })
      context.report.result(
        describeEviction(done, { isDryRun: false }),
        () => `evicted\n${formatEviction(done)}`,
      )
      if (done.keptCopies > 0)
        context.report.note(
          'their files stay in the trash for a day, or until dsc needs the room; to bring them back: dsc undo',
        )
    })
}

function describeEviction(
  plan: EvictionPlan & Partial<Pick<Evicted, 'keptCopies'>>,
  { isDryRun }: { readonly isDryRun: boolean },
): AnswerOf<'evict'> {
  return {
    isDryRun,
    freedBytes: plan.freedBytes,
    keptCopies: plan.keptCopies ?? 0,
    victims: plan.victims.map(({ copy, reason }) => ({
      dataset: copy.dataset,
      version: copy.version,
      diskBytes: copy.chargedBytes,
      lastTask: copy.lastTask,
      lastUsedAt: new Date(copy.lastUsedAtMs).toISOString(),
      reason,
    })),
  }
}

function formatEviction(plan: EvictionPlan): string {
  if (plan.victims.length === 0) return '  nothing'
  return alignColumns(
    plan.victims.map(({ copy, reason }) => [
      `  ${copy.dataset}`,
      formatByteSize(copy.chargedBytes),
      `last used ${new Date(copy.lastUsedAtMs).toISOString()} by ${copy.lastTask ?? 'nobody'}`,
      reason,
    ]),
  )
}
