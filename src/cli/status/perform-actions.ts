import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { describeUndone } from '../../cache/upkeep/describe-deed.js'
import { DscError } from '../../failure/dsc-error.js'
import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import { checkProcess, holdByThisProcess } from '../../platform/processes.js'
import { findUserName } from '../../platform/this-user.js'
import { tryReadFile } from '../../platform/try-read-file.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { StatusActions } from '../../tui/status-actions.js'
import type { Action } from '../../tui/view/screen-state.js'
import type { CliContext } from '../context.js'

/** Life of the screen's own lease on a download where nobody can see whether the screen still runs, in ms. */
const LEASE_MS = 24 * 3_600_000

/** The actions behind the keys of `dsc status`, by the same use cases as the commands. */
export class ActionPerformer implements StatusActions {
  readonly #context: CliContext
  readonly #openRecord: () => Promise<RecordStore>
  readonly #user: string
  readonly #underWay = new Set<Promise<unknown>>()
  /** Stops the screen's own downloads, by dataset. */
  readonly #preparing = new Map<string, AbortController>()

  /** `openRecord` returns the record that the screen reads; the signal of `context` aborts actions under way. */
  constructor(context: CliContext, openRecord: () => Promise<RecordStore>) {
    this.#context = context
    this.#openRecord = openRecord
    this.#user = findUserName(context.environment)
  }

  perform(action: Action, stageLease: PlacedLease | undefined): Promise<string | undefined> {
    const work = this.#carryOut(action, stageLease).then((told) =>
      typeof told === 'string' ? told : undefined,
    )
    this.#underWay.add(work)
    const forget = () => this.#underWay.delete(work)
    work.then(forget, forget)
    return work
  }

  whyNotCancel(stageLease: PlacedLease | undefined): string | undefined {
    const stager = findStager(stageLease)
    return 'obstacle' in stager ? stager.obstacle : undefined
  }

  /** Resolves when nothing is under way any more, however it ended. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  #carryOut(action: Action, stageLease: PlacedLease | undefined): Promise<unknown> {
    switch (action.kind) {
      case 'lock':
        return this.#setLock(action.copyId, action.reason)
      case 'unlock':
        return this.#setLock(action.copyId, null)
      case 'evict':
        return this.#evict(action.copyId)
      case 'release':
        return this.#release(action.leaseId)
      case 'cancel':
        return this.#cancel(action.dataset, stageLease)
      case 'prepare':
        return this.#prepare(action.dataset)
      case 'undo':
        return this.#undo()
    }
  }

  async #release(leaseId: string): Promise<void> {
    const record = await this.#openRecord()
    const released = await record.releaseUses({ leaseId }, this.#context.nowMs(), this.#user)
    if (released === 0) throw new DscError('LEASE_NOT_FOUND', 'the lease has ended meanwhile')
  }

  async #cancel(dataset: string, stageLease: PlacedLease | undefined): Promise<void> {
    if (!stageLease) throw new Error(`the download of ${dataset} has ended`)
    const stager = findStager(stageLease)
    if ('obstacle' in stager) throw new DscError('USAGE', stager.obstacle)
    if (stager.pid === process.pid) this.#preparing.get(dataset)?.abort('stopped in dsc status')
    else process.kill(stager.pid, 'SIGTERM')
  }

  async #setLock(copyId: string, reason: string | null): Promise<void> {
    const nowMs = this.#context.nowMs()
    const record = await this.#openRecord()
    const lock = reason === null ? null : { by: this.#user, reason, atMs: nowMs }
    const changed = await record.setLock({ copyId }, lock, nowMs, this.#user)
    if (changed.length === 0) throw new DscError('COPY_NOT_FOUND', 'the copy is gone')
  }

  async #evict(copyId: string): Promise<void> {
    const copy = await findCopy(await this.#openRecord(), copyId, this.#context.nowMs())
    const { node } = await this.#context.config()
    if (copy.node !== node) {
      throw new DscError('USAGE', `${copy.dataset} is on ${copy.node}, this is ${node}`, {
        hint: `dsc evict ${copy.dataset} on ${copy.node}`,
      })
    }
    const api = await this.#context.openApi(await this.#openRecord())
    const selection = { kind: 'copy', copyId } as const
    await api.planEviction(selection, { isOwn: true })
    const done = await api.evict(selection, { by: this.#user })
    if (done.victims.length === 0) {
      throw new DscError('COPY_IN_USE', `${copy.dataset} was leased or locked meanwhile`)
    }
  }

  async #undo(): Promise<string> {
    const api = await this.#context.openApi(await this.#openRecord())
    return describeUndone(await api.undo({ by: this.#user }))
  }

  async #prepare(name: string): Promise<void> {
    const { nowMs } = this.#context
    const dataset = await resolveDataset(this.#context, name)
    const stopping = new AbortController()
    this.#preparing.set(dataset.name, stopping)
    const signal = AbortSignal.any([this.#context.signal, stopping.signal])
    const record = await this.#openRecord()
    const api = await this.#context.openApi(record)
    // No job uses the copy yet: the lease is this screen's, and ends when the copy is there.
    const lease = {
      task: `${this.#user}@${hostname()}:status`,
      holder: holdByThisProcess(),
      expiresAtMs: nowMs() + LEASE_MS,
    }
    const prepared = await api.prepare(
      { dataset, lease, isRefresh: false, mayWait: true },
      { signal, onProgress: () => {} },
    )
    await record.releaseUses({ leaseId: prepared.leaseId }, nowMs())
  }
}

async function findCopy(record: RecordStore, copyId: string, nowMs: number): Promise<CopyUse> {
  const [copy] = await record.listCopies({ copyId }, nowMs)
  if (!copy) throw new DscError('COPY_NOT_FOUND', 'the copy is gone')
  return copy
}

/** The process to kill to stop a download, or why that is impossible from here. */
type Stager = { readonly pid: number } | { readonly obstacle: string }

/**
 * Finds who stages under this lease. Only two kinds can be stopped without collateral damage: a `dsc prepare` of this
 * user on this machine, and the screen's own download. Agents, gateways and trainers have other work to do.
 */
function findStager(lease: PlacedLease | undefined): Stager {
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
  const words = tryReadFile(`/proc/${pid}/cmdline`)?.split('\0') ?? []
  return words.includes('prepare') && words.some((word) => /(^|\/)dsc(\.js|-[a-z0-9-]+)?$/.test(word))
}

function statOwner(pid: number): number | undefined {
  try {
    return statSync(`/proc/${pid}`).uid
  } catch {
    return undefined
  }
}
