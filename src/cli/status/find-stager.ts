import { readFileSync, statSync } from 'node:fs'
import type { PlacedLease } from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'

/** The process to kill to stop a download, or why that is impossible from here. */
type Stager = { readonly pid: number } | { readonly obstacle: string }

/**
 * Finds who stages under this lease. Only two kinds can be stopped without collateral damage: a `dsc prepare` of this
 * user on this machine, and the screen's own download. Agents, gateways and trainers have other work to do.
 */
export function findStager(lease: PlacedLease | undefined): Stager {
  if (!lease)
    return { obstacle: 'it was interrupted: the next dsc prepare continues it, or dsc cleanup removes it' }
  const { holder, task, dataset } = lease
  if (holder.kind !== 'process')
    return {
      obstacle: `${task} stages ${dataset} and cannot be stopped from here: dsc does not know its process`,
    }
  const { pid, host } = holder
  if (checkProcess(holder, 0) !== 'alive')
    return {
      obstacle: `${dataset} is staged by process ${pid} on ${host}: stop it there, with dsc status or kill ${pid}`,
    }
  if (pid === process.pid) return { pid }
  if (!isPrepare(pid))
    return { obstacle: `process ${pid} stages ${dataset} beside other work: stop that, or let it go on` }
  const own = process.getuid?.() ?? 0
  if (own !== 0 && statOwner(pid) !== own)
    return { obstacle: `process ${pid}, which stages ${dataset}, belongs to another user` }
  return { pid }
}

function isPrepare(pid: number): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return words.includes('prepare') && words.some((word) => /(^|\/)dsc(\.js|-[a-z0-9-]+)?$/.test(word))
  } catch {
    return false
  }
}

function statOwner(pid: number): number | undefined {
  try {
    return statSync(`/proc/${pid}`).uid
  } catch {
    return undefined
  }
}
