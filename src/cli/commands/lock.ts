import { Command } from 'commander'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { missingCopy } from '../../cache/names/missing-copy.js'
import type { Copy, CopyLock } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { findUserName } from '../../platform/this-user.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseWords } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'

/** `dsc lock`: neither the limits nor an operator's evict delete the dataset's copies on this node. */
export function lockCommand(context: CliContext) {
  return new Command('lock')
    .argument('<dataset>')
    .option('--reason <text>', 'shown to everybody whom the lock stops', argument(parseWords))
    .addHelpText(
      'after',
      "\nExamples:\n  dsc lock flowers\n  dsc lock flowers --reason 'paper deadline, ask Ada'",
    )
    .action(async (named, options) => {
      const dataset = await requireKnownDataset(context, named, 'dsc lock')
      const earlier = await listLocked(context, dataset)
      const by = findUserName(context.environment)
      const copies = await setLock(context, dataset, {
        by,
        reason: options.reason ?? 'locked by hand',
        atMs: context.nowMs(),
      })
      const locked = copies.filter(({ copyId }) => !earlier.some((copy) => copy.copyId === copyId))
      const [kept] = earlier
      context.report.result(describeLocks(copies), () =>
        locked.length === 0 && kept?.lock
          ? `${dataset} is locked already, by ${kept.lock.by}: ${kept.lock.reason}`
          : `locked ${dataset} (${countCopies(locked)})`,
      )
      if (locked.length === 0 && options.reason !== undefined && options.reason !== kept?.lock?.reason) {
        context.report.note(`the reason stays as it is; for another one: dsc unlock ${dataset} first`)
      }
    })
}

/** `dsc unlock`: lets dsc evict the dataset's idle copies again. */
export function unlockCommand(context: CliContext) {
  return new Command('unlock')
    .argument('<dataset>')
    .addHelpText('after', '\nExamples:\n  dsc unlock flowers\n  dsc unlock flowers --json')
    .action(async (named) => {
      const dataset = await requireKnownDataset(context, named, 'dsc unlock')
      const locked = await listLocked(context, dataset)
      const copies = await setLock(context, dataset, null)
      context.report.result(describeLocks(copies), () =>
        locked.length === 0 ? `${dataset} was not locked` : `unlocked ${dataset} (${countCopies(locked)})`,
      )
      if (copies.some((copy) => copy.source === null)) {
        context.report.note(
          `${dataset} stays all the same: no remote source is known, so it could not be fetched again.\n` +
            `  name one with: dsc adopt <folder> --name ${dataset} --source s3://bucket/prefix/`,
        )
      }
    })
}

async function listLocked(context: CliContext, dataset: string): Promise<readonly Copy[]> {
  const { node } = await context.config()
  const record = await context.openRecord()
  const copies = await record.listCopies({ dataset, node }, context.nowMs())
  return copies.filter(({ lock }) => lock !== null)
}

async function setLock(
  context: CliContext,
  dataset: string,
  lock: CopyLock | null,
): Promise<readonly Copy[]> {
  const verb = lock ? 'dsc lock' : 'dsc unlock'
  const { node } = await context.config()
  const record = await context.openRecord()
  const by = findUserName(context.environment)
  const copies = await record.setLock({ dataset, node }, lock, context.nowMs(), by)
  if (copies.length > 0) return copies
  const otherwise = lock ? `dsc prepare ${dataset}` : `dsc why ${dataset}`
  throw await missingCopy(record, { dataset, node }, { command: verb, otherwise })
}

function describeLocks(copies: readonly Copy[]): AnswerOf<'lock'> {
  return {
    copies: copies.map(({ dataset, version, node, lock }) => ({
      dataset,
      version,
      node,
      isLocked: lock !== null,
      lock: lock && { by: lock.by, reason: lock.reason, at: new Date(lock.atMs).toISOString() },
    })),
  }
}

function countCopies(copies: readonly Copy[]): string {
  return formatCount(copies.length, 'copy', 'copies')
}
