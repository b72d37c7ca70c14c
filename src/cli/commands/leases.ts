import { Command } from 'commander'
import { describeHeldLease } from '../../cache/leases/describe-lease.js'
import { findDeadLeases } from '../../cache/leases/find-dead-leases.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { readLeasePages } from '../../cache/status/record-pages.js'
import { isLeaseLive, type PlacedLease } from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import type { CliContext } from '../context.js'
import { LEASE_COLUMNS, leaseCells, type ShownLease } from '../output/lease-cells.js'
import { formatLines, formatList, formatPagedTable } from '../output/list-pieces.js'
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
  dsc leases --stale --json | jq '.leases | length'`,
    )
    .action(async (options: LeasesOptions) => {
      if (options.dataset !== undefined)
        await requireKnownDataset(context, options.dataset, 'dsc leases --dataset')
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc leases')
      keepHeapSmall()
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const filter = { dataset: options.dataset, node: options.node }
      const read = () => readShownLeases(readLeasePages(record, filter), options, nowMs)
      if (options.ndjson) return context.report.stream(formatLines(read(), describeHeldLease))
      if (context.report.isJson) return context.report.stream(formatList('leases', read(), describeHeldLease))
      const table = {
        read,
        columns: LEASE_COLUMNS,
        cells: (lease: ShownLease) => leaseCells(lease, nowMs),
        empty: options.stale ? 'No stale leases.' : 'No leases.',
      }
      return context.report.stream(formatPagedTable(table, findTerminalWidth()))
    })
}

/** The leases that are asked for, each with why it counts no more. */
async function* readShownLeases(
  pages: AsyncIterable<readonly PlacedLease[]>,
  { task, stale }: LeasesOptions,
  nowMs: number,
): AsyncGenerator<readonly ShownLease[]> {
  for await (const page of pages) {
    const leases = task === undefined ? page : page.filter((lease) => lease.task === task)
    const found = findDeadLeases(leases, { checkProcess, slurmJobs: undefined, nowMs })
    const dead = new Map(found.map(({ leaseId, reason }) => [leaseId, reason]))
    const shown = leases.map((lease) => ({
      ...lease,
      staleReason: dead.get(lease.leaseId) ?? (isLeaseLive(lease, nowMs) ? null : 'it has expired'),
    }))
    yield stale ? shown.filter(({ staleReason }) => staleReason !== null) : shown
  }
}
