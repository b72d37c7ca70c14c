import { Command } from 'commander'
import { chooseHolder } from '../../cache/leases/choose-holder.js'
import { identifyCaller } from '../../cache/leases/identify-caller.js'
import { nameDataset, requireKnownDataset } from '../../cache/names/known-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import { findUserName } from '../../platform/this-user.js'
import { taskOption } from '../arguments/lease-options.js'
import type { CliContext } from '../context.js'

/** `dsc release`: seed step 7, the task is done with the dataset. */
export function releaseCommand(context: CliContext) {
  return new Command('release')
    .argument('[dataset]', 'the dataset, by name or URL (with --all: all of the task)')
    .addOption(taskOption('the task that holds it (default: as in `dsc prepare`)'))
    .option('--lease <lease>', 'end this lease, as `dsc leases` lists it')
    .option('--all', 'end every lease of the task on this node')
    .option('--any-node', 'also on other nodes')
    .addHelpText(
      'after',
      '\nReleasing twice is no error.\n\nExamples:\n  dsc release flowers\n  dsc release flowers --task nightly-eval\n  dsc release --all            in a Slurm epilog',
    )
    .action(async (named, options) => {
      if (named === undefined && options.all === undefined && options.lease === undefined) {
        throw new DscError('USAGE', 'nothing to release: name a dataset, or give --all or --lease', {
          hint: 'dsc release <dataset> --task <name>',
        })
      }
      const { node } = await context.config()
      const record = await context.openRecord()
      const by = findUserName(context.environment)
      const dataset = named === undefined ? undefined : await nameDataset(context, named)
      if (options.lease !== undefined) {
        const released = await record.releaseUses({ leaseId: options.lease }, context.nowMs(), by)
        if (released === 0) {
          throw new DscError('LEASE_NOT_FOUND', `no lease has the id ${options.lease}`, {
            hint: 'dsc leases',
          })
        }
        context.report.result<'release --lease'>(
          { released, leaseId: options.lease },
          () => `released lease ${options.lease}`,
        )
        return
      }
      const caller = identifyCaller({ environment: context.environment, task: options.task })
      const { task } = chooseHolder(caller, context.nowMs())
      const released = await record.releaseUses(
        { task, node: options.anyNode ? undefined : node, dataset },
        context.nowMs(),
        by,
      )
      // A misspelt name leaves the lease that it meant.
      if (released === 0 && dataset !== undefined) await requireKnownDataset(context, dataset, 'dsc release')
      context.report.result<'release'>({ released, task, dataset: dataset ?? null }, () =>
        released === 0
          ? `task ${task} has no lease${dataset ? ` on ${dataset}` : ''}`
          : `released ${formatCount(released, 'lease')} of task ${task}`,
      )
    })
}
