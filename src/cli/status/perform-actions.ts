import { hostname } from 'node:os'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { describeUndone } from '../../cache/upkeep/describe-deed.js'
import { DscError } from '../../failure/dsc-error.js'
import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import { holdByThisProcess } from '../../platform/processes.js'
import { findUserName } from '../../platform/this-user.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { StatusActions } from '../../tui/status-actions.js'
import type { CliContext } from '../context.js'
import { findStager } from './find-stager.js'

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

  lock(copyId: string, reason: string): Promise<void> {
    return this.#track(this.#setLock(copyId, reason))
  }

  unlock(copyId: string): Promise<void> {
    return this.#track(this.#setLock(copyId, null))
  }

  evict(copyId: string): Promise<void> {
    return this.#track(this.#evict(copyId))
  }

  release(leaseId: string): Promise<void> {
    return this.#track(this.#release(leaseId))
  }

  cancel(stageLease: PlacedLease): Promise<void> {
    return this.#track(this.#cancel(stageLease))
  }

  whyNotCancel(stageLease: PlacedLease | undefined): string | undefined {
    const stager = findStager(stageLease)
    return 'obstacle' in stager ? stager.obstacle : undefined
  }

  prepare(dataset: string): Promise<void> {
    return this.#track(this.#prepare(dataset))
  }

  undo(): Promise<string> {
    return this.#track(this.#undo())
  }

  /** Resolves when nothing is under way any more, however it ended. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  #track<Outcome>(work: Promise<Outcome>): Promise<Outcome> {
    this.#underWay.add(work)
    const forget = () => this.#underWay.delete(work)
    work.then(forget, forget)
    return work
  }

  async #release(leaseId: string): Promise<void> {
    const record = await this.#openRecord()
    const released = await record.releaseUses({ leaseId }, this.#context.nowMs(), this.#user)
    if (released === 0) throw new DscError('LEASE_NOT_FOUND', 'the lease has ended meanwhile')
  }

  async #cancel(stageLease: PlacedLease): Promise<void> {
    const stager = findStager(stageLease)
    if ('obstacle' in stager) throw new DscError('USAGE', stager.obstacle)
    if (stager.pid === process.pid) this.#preparing.get(stageLease.dataset)?.abort('stopped in dsc status')
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
