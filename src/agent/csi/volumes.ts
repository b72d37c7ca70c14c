import type { Cache } from '../../cache/cache.js'
import type { Prepared } from '../../cache/prepare/prepare-dataset.js'
import { readWithOwn } from '../../cache/read-with-own.js'
import { redactUrl } from '../../failure/redact.js'
import type { PlacedLease } from '../../model/lease.js'
import type { MountEntry } from '../../platform/mount-table.js'
import type { Catalog } from './choose-dataset.js'
import { CsiRefusal } from './csi-failure.js'
import { KubeletPauses } from './kubelet-pauses.js'
import { findMount, type Mounter } from './mounter.js'
import { chooseVolumeSource } from './own-volume.js'
import type { ToldStaging } from './tell-stagings.js'
import { endLeases, isLeaseOf, keepLease, leaseOfPod } from './volume-leases.js'
import type { VolumeNote, VolumeNotes } from './volume-notes.js'
import type { Pod, VolumeRequest } from './volume-request.js'
import { VolumeStaging } from './volume-staging.js'

/** Kubelet gives up a call after two minutes, and waits up to two more before the next. A call that is held, at most this
 * long, answers right after the last byte. */
const MAX_HOLD_MS = 110_000
/** Kept of a call's deadline for the answer. */
const ANSWER_MS = 3000
/** How long a call waits for the record to change a lease, which then goes on in the background. */
const RECORD_MS = 3000
/** A volume that is neither mounted nor asked for during this time is over: twice kubelet's longest pause. */
const FORGET_MS = 300_000

/** The cache and the settings that volumes are made with. */
export interface VolumeMeans {
  readonly cache: Cache
  readonly catalog: Catalog
  readonly notes: VolumeNotes
  readonly mounter: Mounter
  /** Called before the first copy is staged that one namespace alone may see. */
  readonly onPrivate: () => void
  /** Called once a volume is mounted that kubelet had to ask for again: it may pause by now. */
  readonly onLateMount: (pod: Pod) => void
  readonly note: (sentence: string) => void
}

/**
 * The volumes of the pods on this node: for each a note on disk, a lease on its copy and a mount, made in this order
 * and taken away in the opposite one. Every call may come twice, in any order, and after a kill at any point.
 */
export class Volumes {
  readonly #means: VolumeMeans
  readonly #stagings = new Map<string, VolumeStaging>()
  readonly #pauses = new KubeletPauses()
  readonly #askedAtMs = new Map<string, number>()
  readonly #turns = new Map<string, Promise<unknown>>()
  readonly #endings = new Map<string, Promise<void>>()
  readonly #beganAtMs: number

  constructor(means: VolumeMeans) {
    this.#means = means
    this.#beganAtMs = means.cache.nowMs()
  }

  /**
   * Gives a pod its dataset at a path. Waits for the copy nearly until `deadlineMs` (Unix epoch), then refuses with
   * ABORTED and how far it is, or UNAVAILABLE and why its source fails; the staging goes on, and the next call joins it.
   */
  async publish(request: VolumeRequest, deadlineMs: number): Promise<void> {
    const pauseMs = this.#pauses.asked(request.target, performance.now())
    try {
      await this.#publish(request, deadlineMs, pauseMs)
      this.#pauses.forget(request.target)
    } catch (error) {
      this.#pauses.refused(request.target, performance.now())
      throw error
    }
  }

  async #publish(request: VolumeRequest, deadlineMs: number, pauseMs: number): Promise<void> {
    const { cache, catalog, notes } = this.#means
    const { target } = request
    await this.#settle(target)
    const known = this.#findKnown(request)
    this.#askedAtMs.set(target, cache.nowMs())
    if (known?.copyId !== undefined && this.#findMount(target)?.isReadOnly) {
      await this.#noteFailure(keepLease(cache, known)) // it is mounted: the pod must not fail for the record's sake
      return
    }
    const { volumeId, pod } = request
    const { dataset, own } = chooseVolumeSource(catalog, request)
    if (own) this.#means.onPrivate()
    const named = { named: request.dataset, dataset: dataset.name }
    const note: VolumeNote = { version: 1, volumeId, target, pod, ...named }
    if (!known) notes.save(note)
    const staging =
      this.#stagings.get(target) ??
      new VolumeStaging({
        ...{ dataset, pod, note: this.#means.note },
        cache: own ? readWithOwn(cache, own) : cache,
      })
    this.#stagings.set(target, staging)
    const holdMs = Math.min(MAX_HOLD_MS, deadlineMs - Date.now() - ANSWER_MS)
    let prepared: Prepared | undefined
    try {
      prepared = await staging.waitAtMost(holdMs, pauseMs)
    } catch (error) {
      if (this.#stagings.get(target) === staging) await this.#end(note)
      throw error
    }
    if (prepared === undefined) {
      const { problem, progress } = staging
      throw problem === undefined
        ? new CsiRefusal('ABORTED', `${progress}; it goes on`)
        : new CsiRefusal('UNAVAILABLE', `${problem}; dsc tries again`)
    }
    await this.#inTurn(target, () =>
      this.#mount({ ...note, copyId: prepared.copy.copyId }, staging, prepared),
    )
    if (known || this.#pauses.wasRefused(target)) this.#means.onLateMount(pod)
  }

  /** Takes a volume from its pod. One that was never seen is gone already. */
  async unpublish(target: string): Promise<void> {
    this.#pauses.forget(target)
    const aborted = this.#abort(target)
    await this.#inTurn(target, async () => {
      await this.#means.mounter.unmount(target)
      const settled = Promise.all([aborted, this.#abort(target)]) // a call may have begun to stage since
      const note = this.#means.notes.find(target)
      if (note) await this.#end(note, settled)
    })
  }

  /** The note of a volume mounted at `target`, or anywhere without it; undefined if it is not mounted. */
  findMounted(volumeId: string, target?: string): VolumeNote | undefined {
    return this.#means.notes
      .list()
      .filter((note) => note.volumeId === volumeId && !note.isOver)
      .find((note) => (target ?? note.target) === note.target && this.#findMount(note.target))
  }

  /** Uids of the pods that have volumes here, or are about to. */
  listPods(): ReadonlySet<string> {
    return new Set(this.#list().map(({ pod }) => pod.uid))
  }

  /** The datasets that are on their way to pods. */
  listStagings(): readonly ToldStaging[] {
    return [...this.#stagings.values()]
  }

  /**
   * Brings notes, mounts and leases together again: leases what is mounted and was not leased, and ends what is over.
   * `leases`: those of this node.
   */
  async reconcile(leases: readonly PlacedLease[]): Promise<void> {
    const { cache, notes } = this.#means
    const mounted = new Set(this.#means.mounter.list().map(({ path }) => path))
    const nowMs = cache.nowMs()
    for (const note of notes.list()) {
      const askedAtMs = this.#askedAtMs.get(note.target) ?? this.#beganAtMs
      if (note.isOver) await this.#noteFailure(this.#forget(note))
      else if (mounted.has(note.target)) {
        if (!leases.some((lease) => isLeaseOf(note, lease))) await this.#noteFailure(this.#leaseAgain(note))
      } else if (nowMs - askedAtMs > FORGET_MS) await this.#noteFailure(this.unpublish(note.target))
    }
  }

  /** Stops all stagings; volumes stay as they are, also those whose dataset is not ready yet. */
  stop(): void {
    for (const target of [...this.#stagings.keys()]) void this.#abort(target)
  }

  /** Stops the staging of a volume. Resolves once it has ended and can take no lease. */
  async #abort(target: string): Promise<void> {
    const staging = this.#stagings.get(target)
    this.#stagings.delete(target)
    staging?.abort()
    await staging?.prepared.catch(() => {})
  }

  #list(): readonly VolumeNote[] {
    return this.#means.notes.list().filter(({ isOver }) => !isOver)
  }

  #findMount(target: string): MountEntry | undefined {
    return findMount(this.#means.mounter, target)
  }

  /** Waits until nothing is left of a volume that is over. */
  async #settle(target: string): Promise<void> {
    const note = this.#means.notes.find(target)
    if (note?.isOver) await this.#forget(note)
  }

  /** The note of this very volume. Another volume at its path is a mistake of the caller. */
  #findKnown(request: VolumeRequest): VolumeNote | undefined {
    const known = this.#means.notes.find(request.target)
    if (!known) return undefined
    const isSame = known.volumeId === request.volumeId && known.pod.uid === request.pod.uid
    if (isSame && known.named === request.dataset) return known
    throw new CsiRefusal(
      'ALREADY_EXISTS',
      `${request.target} has volume ${known.volumeId} with ${redactUrl(known.named)}; it was asked for ${request.volumeId} with ${redactUrl(request.dataset)}`,
    )
  }

  async #mount(note: VolumeNote, staging: VolumeStaging, { copy }: Prepared): Promise<void> {
    const { target } = note
    if (this.#findMount(target)?.isReadOnly && this.#means.notes.find(target)?.copyId === copy.copyId) return
    if (this.#stagings.get(target) !== staging)
      throw new CsiRefusal('ABORTED', 'kubelet gave the volume back before it was mounted')
    try {
      this.#means.notes.save(note)
      await this.#means.mounter.mount(copy.path, target)
    } catch (error) {
      if (!this.#findMount(target)) await this.#end(note)
      throw error
    } finally {
      this.#stagings.delete(target)
    }
  }

  /**
   * Ends a volume that is not mounted, once its staging has `settled`. The record may be away, and the disk may be full:
   * then its lease ends later.
   */
  async #end(note: VolumeNote, settled?: Promise<unknown>): Promise<void> {
    this.#stagings.delete(note.target)
    const end = async () => {
      try {
        this.#means.notes.end(note)
      } finally {
        await this.#forget(note, settled)
      }
    }
    await this.#noteFailure(end())
  }

  /** Forgets a volume that is over, once at a time: a late second end would take the lease of the next one at its path. */
  #forget(note: VolumeNote, settled: Promise<unknown> = Promise.resolve()): Promise<void> {
    const { target } = note
    const underWay = this.#endings.get(target)
    if (underWay) return underWay
    const ending = settled
      .then(() => this.#release(note))
      .finally(() => {
        this.#endings.delete(target)
      })
    this.#endings.set(target, ending)
    return ending
  }

  /** Ends the lease of a volume, unless its pod has another with the same dataset; then its note goes. */
  async #release(note: VolumeNote): Promise<void> {
    const { cache, notes } = this.#means
    await endLeases(cache, note, () =>
      this.#list().some(
        ({ target, pod, dataset }) =>
          target !== note.target && pod.uid === note.pod.uid && dataset === note.dataset,
      ),
    )
    notes.remove(note.target)
    this.#askedAtMs.delete(note.target)
  }

  async #leaseAgain(note: VolumeNote): Promise<void> {
    if (await keepLease(this.#means.cache, note)) return
    const { task } = leaseOfPod(note.pod)
    this.#means.note(`${task} has ${note.dataset} mounted, but its copy is no longer in the record`)
  }

  /** Waits a while for work and notes its failure, so that no volume holds up another; `reconcile` repeats it. */
  async #noteFailure(work: Promise<unknown>): Promise<void> {
    const noted = work.catch((error: unknown) =>
      this.#means.note(error instanceof Error ? error.message : String(error)),
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, RECORD_MS)
    })
    await Promise.race([noted, late])
    clearTimeout(timer)
  }

  /** One mount or unmount of a path at a time. */
  async #inTurn<T>(target: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(target) ?? Promise.resolve()
    const turn = before.then(work, work)
    this.#turns.set(target, turn)
    try {
      return await turn
    } finally {
      if (this.#turns.get(target) === turn) this.#turns.delete(target)
    }
  }
}
