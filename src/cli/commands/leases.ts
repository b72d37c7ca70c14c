import { Command } from 'commander'
import { findDeadLeases } from '../../cache/leases/find-dead-leases.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { describeLease } from '../../cache/status/status-json.js'
import { readStatus } from '../../cache/status/status-snapshot.js'
import { isLeaseLive } from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'
import type { CliContext } from '../context.js'
import { formatLeases, type ShownLease } from '../output/status-table.js'
import { findTerminalWidth } from '../output/text-table.js'

interface LeasesOptions {
  readonly stale?: true
  readonly dataset?: string
  readonly task?: string
  readonly node?: string
  readonly ndjson?: true
}

/** `dsc leases`: who keeps which copy, since when, until when. */
export function leasesCommand(context: CliContext): Command {
  return new Command('leases')
    .description('list who keeps which copy from being evicted')
    .option('--stale', 'only leases that expired or whose process has ended (dsc cleanup ends them)')
    .option('--dataset <dataset>', 'only leases on copies of this dataset')
    .option('--task <task>', 'only leases of this task')
    .option('--node <node>', 'only leases on this node')
    .option('--ndjson', 'print JSON, one line for each')
    .addHelpText(
      'after',
      `
Examples:
  dsc leases --dataset flowers
  dsc leases --task 4711
  dsc leases --stale --json | jq length`,
    )
    .action(async (options: LeasesOptions) => {
      if (options.dataset !== undefined)
        await requireKnownDataset(context, options.dataset, 'dsc leases --dataset')
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc leases')
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const { leases } = await readStatus(
        record,
        {
          ...(options.dataset === undefined ? {} : { dataset: options.dataset }),
          ...(options.node === undefined ? {} : { node: options.node }),
        },
        { nowMs },
      )
      const dead = new Map(
        findDeadLeases(leases, { checkProcess, slurmJobs: undefined, nowMs }).map((found) => [
          found.leaseId,
          found.reason,
        ]),
      )
      const shown = leases
        .map(
          (lease): ShownLease => ({
            ...lease,
            staleReason: dead.get(lease.leaseId) ?? (isLeaseLive(lease, nowMs) ? null : 'it has expired'),
          }),
        )
        .filter((lease) => options.task === undefined || lease.task === options.task)
        .filter((lease) => !options.stale || lease.staleReason !== null)
      const rows = Iterator.from(shown).map((lease) => ({
        ...describeLease(lease),
        staleReason: lease.staleReason,
      }))
      if (options.ndjson) return context.report.lines(rows)
      context.report.result([...rows], () =>
        shown.length === 0
          ? options.stale
            ? 'No stale leases.'
            : 'No leases.'
          : formatLeases(shown, nowMs, findTerminalWidth()),
      )
    })
}
