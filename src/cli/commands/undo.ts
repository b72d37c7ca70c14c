import { Command } from 'commander'
import { describeDeed, describeUndone, measureEvent } from '../../cache/upkeep/describe-deed.js'
import type { PastDeed } from '../../cache/upkeep/past-deeds.js'
import { findUserName } from '../../platform/this-user.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseCount } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc undo`: takes back what a user did in the last day, while the files are in the trash. */
export function undoCommand(context: CliContext) {
  return new Command('undo')
    .description('take back your last eviction, cleanup, unlock or release')
    .argument('[id]', 'another one of the last day, as --list shows it', argument(parseCount))
    .option('--list', 'list what can be taken back')
    .addHelpText(
      'after',
      '\nEvicted files stay in the trash for a day, or until dsc needs the room.\n\nExamples:\n  dsc undo\n  dsc undo --list\n  dsc undo 1234',
    )
    .action(async (id, options) => {
      const api = await context.openApi()
      if (options.list) {
        const deeds = await api.listDeeds()
        context.report.result<'undo --list'>({ deeds: deeds.map(answerDeed) }, () => formatDeeds(deeds))
        return
      }
      const undone = await api.undo({ id, by: findUserName(context.environment) })
      const answer: AnswerOf<'undo'> = {
        deed: answerDeed(undone.deed),
        undone: undone.done.map(({ dataset, node }) => ({ dataset, node })),
        refused: [...undone.refused],
      }
      context.report.result(answer, () => describeUndone(undone))
      for (const { reason } of undone.refused) context.report.note(reason)
    })
}

function answerDeed({ id, kind, by, atMs, events }: PastDeed): AnswerOf<'undo'>['deed'] {
  return {
    id,
    kind,
    by,
    at: new Date(atMs).toISOString(),
    items: events.map((event) => ({
      dataset: event.dataset,
      node: event.node,
      task: event.kind === 'released' ? event.task : null,
      diskBytes: measureEvent(event) ?? null,
    })),
  }
}

function formatDeeds(deeds: readonly PastDeed[]): string {
  if (deeds.length === 0) return 'nothing to undo'
  return alignColumns([
    ['ID', 'AT', 'BY', 'DEED'],
    ...deeds.map((deed) => [`${deed.id}`, new Date(deed.atMs).toISOString(), deed.by, describeDeed(deed)]),
  ])
}
