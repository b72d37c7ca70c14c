import { Command } from 'commander'
import { requireKnownDataset } from '../../library/known-dataset.js'
import type { Copy, CopyLock } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { findUserName } from '../../platform/this-user.js'
import { missingCopy } from '../../stage/missing-copy.js'
import type { CliContext } from '../context.js'

/** `dsc lock`: no policy and no operator's evict deletes the dataset's copies on this node. */
export function lockCommand(context: CliContext): Command {
  return new Command('lock')
    .description('never evict the copies of a dataset on this node')
    .argument('<dataset>')
    .option('--reason <text>', 'shown wherever the lock stands in the way', 'locked by hand')
    .addHelpText(
      'after',
      "\nExamples:\n  dsc lock flowers\n  dsc lock flowers --reason 'paper deadline, ask Ada'",
    )
    .action(async (dataset: string, options: { reason: string }) => {
      const by = findUserName(context.environment)
      const copies = await setLock(context, dataset, { by, reason: options.reason, atMs: context.nowMs() })
      context.report.result(lockFields(copies), () => `locked ${dataset} (${countCopies(copies)})`)
    })
}

/** `dsc unlock`: the policy may evict the dataset's copies again once they are idle. */
export function unlockCommand(context: CliContext): Command {
  return new Command('unlock')
    .description('let the copies of a dataset on this node be evicted again')
    .argument('<dataset>')
    .addHelpText('after', '\nExamples:\n  dsc unlock flowers\n  dsc unlock flowers --json')
    .action(async (dataset: string) => {
      const record = await context.openRecord()
      const { node } = await context.config()
      const before = await record.listCopies({ dataset, node }, context.nowMs())
      const locked = before.filter(({ lock }) => lock !== null)
      const copies = await setLock(context, dataset, null)
      context.report.result(lockFields(copies), () =>
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

async function setLock(
  context: CliContext,
  dataset: string,
  lock: CopyLock | null,
): Promise<readonly Copy[]> {
  const verb = lock ? 'dsc lock' : 'dsc unlock'
  await requireKnownDataset(context, dataset, verb)
  const { node } = await context.config()
  const record = await context.openRecord()
  const copies = await record.setLock({ dataset, node }, lock, context.nowMs())
  if (copies.length > 0) return copies
  const otherwise = lock ? `dsc prepare ${dataset}` : `dsc why ${dataset}`
  throw await missingCopy(record, { dataset, node }, { command: verb, otherwise })
}

function lockFields(copies: readonly Copy[]) {
  return copies.map(({ dataset, version, node, lock }) => ({
    dataset,
    version,
    node,
    locked: lock !== null,
    lock,
  }))
}

function countCopies(copies: readonly Copy[]): string {
  return formatCount(copies.length, 'copy', 'copies')
}
