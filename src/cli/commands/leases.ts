import { Command } from 'commander'
import { describeHeldLease } from '../../cache/leases/describe-lease.js'
import { findDeadLeases } from '../../cache/leases/find-dead-leases.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { readLeasePages } from '../../cache/status/record-pages.js'
import {
  FIRST_CONTAINER_UID,
  formatHolder,
  formatUid,
  isLeaseLive,
  type LeaseHolder,
  type PlacedLease,
} from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import { UserDirectory } from '../../platform/user-directory.js'
import { formatSpan } from '../../tui/view/text/format-cells.js'
import type { CliContext } from '../context.js'
import { formatLines, formatList, formatPagedTable } from '../output/list-pieces.js'
import { findTerminalWidth, type TableColumn } from '../output/text-table.js'

/** `dsc leases`: who holds which copy, since when, until when. */
export function leasesCommand(context: CliContext) {
  return new Command('leases')
    .option('--stale', 'only leases that expired or whose process is dead')
    .option('--dataset <dataset>', 'only leases of this dataset')
    .option('--task <task>', 'only leases of this task')
    .option('--node <node>', 'only leases on this node')
    .option('--ndjson', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  dsc leases --dataset flowers
  dsc leases --task 4711
  dsc leases --stale --json | jq '.leases | length'`,
    )
    .action(async (options) => {
      const dataset =
        options.dataset && (await requireKnownDataset(context, options.dataset, 'dsc leases --dataset'))
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc leases')
      keepHeapSmall()
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const filter = { dataset, node: options.node }
      const read = () => readShownLeases(readLeasePages(record, filter), options, nowMs)
      if (options.ndjson) return context.report.stream(formatLines(read(), describeHeldLease))
      if (context.report.isJson) return context.report.stream(formatList('leases', read(), describeHeldLease))
      const table = {
        read,
        columns: leaseColumns(nowMs),
        empty: options.stale ? 'No stale leases.' : 'No leases.',
      }
      return context.report.stream(formatPagedTable(table, findTerminalWidth()))
    })
}

/** The requested leases, each with the reason why it no longer counts, if any. */
async function* readShownLeases(
  pages: AsyncIterable<readonly PlacedLease[]>,
  { task, stale }: { readonly task?: string; readonly stale?: true },
  nowMs: number,
): AsyncGenerator<readonly ShownLease[]> {
  const directory = new UserDirectory()
  for await (const page of pages) {
    const leases = task === undefined ? page : page.filter((lease) => lease.task === task)
    const found = findDeadLeases(leases, { checkProcess, slurmJobs: undefined, nowMs })
    const dead = new Map(found.map(({ leaseId, reason }) => [leaseId, reason]))
    const users = await Promise.all(leases.map(({ holder }) => nameUser(holder, directory)))
    const shown = leases.map((lease, index) => ({
      ...lease,
      user: users[index],
      staleReason: dead.get(lease.leaseId) ?? (isLeaseLive(lease, nowMs) ? null : 'it has expired'),
    }))
    yield stale ? shown.filter(({ staleReason }) => staleReason !== null) : shown
  }
}

/** The user who asked a service for the lease, by name where this machine knows one. */
async function nameUser({ userId }: LeaseHolder, directory: UserDirectory): Promise<string | undefined> {
  if (userId === undefined) return undefined
  return userId >= FIRST_CONTAINER_UID ? formatUid(userId) : directory.nameOf(userId)
}

/** A lease, and why it no longer counts. */
interface ShownLease extends PlacedLease {
  readonly user: string | undefined
  readonly staleReason: string | null
}

/** The columns of `dsc leases`: who holds which copy, until when. */
function leaseColumns(nowMs: number): readonly TableColumn<ShownLease>[] {
  return [
    { title: 'TASK', minWidth: 12, cell: ({ task }) => task },
    { title: 'DATASET', minWidth: 10, cell: ({ dataset }) => dataset },
    { title: 'NODE', minWidth: 7, dropOrder: 2, cell: ({ node }) => node },
    { title: 'FOR', cell: ({ purpose }) => purpose },
    { title: 'SINCE', align: 'right', cell: ({ createdAtMs }) => formatSpan(nowMs - createdAtMs) },
    { title: 'ENDS IN', align: 'right', cell: (lease) => formatEnd(lease, nowMs) },
    { title: 'HOLDER', minWidth: 12, dropOrder: 3, cell: describeHolder },
    {
      ...{ title: 'STALE BECAUSE', minWidth: 14, dropOrder: 1, isLeftOutWhereEmpty: true },
      cell: ({ staleReason }) => staleReason ?? '-',
    },
  ]
}

function formatEnd(lease: ShownLease, nowMs: number): string {
  if (lease.expiresAtMs === null) return '-'
  return isLeaseLive(lease, nowMs) ? formatSpan(lease.expiresAtMs - nowMs) : 'expired'
}

function describeHolder(lease: ShownLease): string {
  const { userId: _, ...holder } = lease.holder // `user` names it
  const what = holder.kind === 'ttl' ? 'ttl' : formatHolder({ ...lease, holder })
  return lease.user === undefined ? what : `${what} by ${lease.user}`
}
