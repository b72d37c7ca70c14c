import type { PlacedLease } from '../../model/lease.js'
import { checkProcess, PROCESS_TREE } from '../../platform/processes.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { chooseHolder } from './choose-holder.js'
import type { identifyCaller } from './identify-caller.js'

/**
 * Names the task that a feed works for: that of the nearest process above it that holds a lease on its node, such as the
 * command of `dsc run` or the script that called `dsc prepare`; else that of `caller`. So one job has one name.
 */
export async function findOwnTask(
  caller: ReturnType<typeof identifyCaller>,
  { record, node }: { readonly record: Pick<RecordStore, 'listLeases' | 'nowMs'>; readonly node: string },
): Promise<string> {
  const above = chooseTaskAbove(await record.listLeases({ node }), listAncestors(process.pid))
  return above ?? chooseHolder(caller, record.nowMs()).task
}

/** The task of the first of `pids` that holds one of the leases. */
export function chooseTaskAbove(leases: readonly PlacedLease[], pids: readonly number[]): string | undefined {
  const ranks = new Map(pids.map((pid, rank) => [pid, rank] as const))
  const found = leases
    .flatMap(({ holder, task }) => {
      const rank = holder.kind === 'process' ? ranks.get(holder.pid) : undefined
      return rank !== undefined && holder.kind === 'process' && checkProcess(holder, 0) === 'alive'
        ? [{ rank, task }]
        : []
    })
    .sort((a, b) => a.rank - b.rank)
  return found[0]?.task
}

function listAncestors(pid: number): readonly number[] {
  const pids: number[] = []
  for (let at = PROCESS_TREE.find(pid)?.parentPid; at !== undefined && at > 0; )
    at = PROCESS_TREE.find(pids[pids.push(at) - 1]!)?.parentPid
  return pids
}
