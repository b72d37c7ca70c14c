import type { Socket } from 'node:net'
import type { SampleTable } from '../../samples/sample-table.js'
import type { Extent } from '../arena/arena-extents.js'
import type { SampleArena } from '../arena/sample-arena.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import type { WorkerProbe } from './headspace.js'
import type { Hello, Start } from './hello.js'
import { placeSession, type Run, type RunSession } from './rank-runs.js'
import type { ServedRank } from './served-ranks.js'
import { formatBatch, formatSessionFrame, MESSAGE } from './wire.js'

interface SessionReadingOptions {
  readonly socket: Socket
  readonly hello: Hello
  readonly rank: ServedRank
  readonly table: SampleTable
  /** Notes for people, passed to the next client that is served. */
  readonly takeNotes: () => readonly string[]
  /** Arena whose released samples to fill with 0xDB; undefined: leave them as they are. */
  readonly poisoned: SampleArena | undefined
  /** Measures how fast the client could be; undefined: not requested. */
  readonly probe: WorkerProbe | undefined
  /** Number of batches that the client may hold at once, and how many of those it keeps while it asks for others. */
  readonly depth: number
  readonly keep: number
}

const PASS_HAS_ENDED = 'another loader of this rank has begun a new pass; this one has ended'

/** Reading of one client: its position, its credits and its leases. */
export class SessionReading implements RunSession {
  readonly rank: ServedRank
  readonly #options: SessionReadingOptions
  /** Sequence number of a batch → the batch that the client holds. */
  readonly #leases = new Map<number, LeasedBatch>()
  #run: Run | undefined
  #nextStep = 0
  /** Number of batches that the client has requested but not received. */
  #credits = 0
  #nextSeq = 1
  #isSending = false
  #isClosed = false
  #hasEnded = false
  /** When the client had received all requested batches; undefined while some are due. */
  #servedAtMs: number | undefined

  constructor(options: SessionReadingOptions) {
    this.#options = options
    this.rank = options.rank
  }

  get pid(): number {
    return this.#options.hello.pid
  }

  get isReading(): boolean {
    // The end of an epoch is sent ahead, too: a client still reads until its last batch is the one in use.
    return !this.#isClosed && (!this.#hasEnded || this.#leases.size > 1 + this.#options.keep)
  }

  /** Begins a pass; releases everything the client holds. */
  async start(start: Start): Promise<void> {
    const { hello, socket } = this.#options
    this.release(Number.POSITIVE_INFINITY)
    const { probe, depth } = this.#options
    for (const batch of probe?.begin(this, depth) ?? []) this.rank.stream.release(batch)
    this.#hasEnded = false
    const placed = placeSession(this.rank.run, start, { ...hello, session: this })
    this.#run = placed?.run
    if (placed === undefined) {
      socket.write(formatSessionFrame(MESSAGE.started, { epoch: start.epoch ?? 0, step: start.step }))
      return this.#endPass()
    }
    const { run, isNew } = placed
    this.rank.run = run
    this.#nextStep = run.step + hello.worker
    this.#credits = 0
    this.#servedAtMs = undefined
    if (isNew) this.rank.opening = this.rank.stream.start(run.epoch, run.step)
    await this.rank.opening // also for the run's other workers: anything they request sooner would be given up
    socket.write(formatSessionFrame(MESSAGE.started, { epoch: run.epoch, step: run.step }))
  }

  /** Lets the client receive `count` more batches. Rejects when they cannot be read. */
  async grant(count: number): Promise<void> {
    this.#credits += count
    if (this.#servedAtMs !== undefined)
      this.rank.stream.meter.stallMs.client += performance.now() - this.#servedAtMs
    this.#servedAtMs = undefined
    if (this.#isSending) return
    this.#isSending = true
    try {
      await this.#sendAll()
    } finally {
      this.#isSending = false
    }
  }

  /** Sends any samples, outside of the order. */
  async sendPicked(ids: readonly number[]): Promise<void> {
    this.#send(await this.rank.stream.pick(ids))
  }

  /** Releases the batches up to sequence number `upTo`. */
  release(upTo: number): void {
    for (const [seq, batch] of this.#leases) {
      if (seq > upTo) break
      this.#leases.delete(seq)
      if (this.#options.probe?.keeps(batch)) continue
      const held = this.#options.poisoned && batch.slots.map((slot) => slot.extent!)
      this.rank.stream.release(batch)
      if (held) this.#poison(batch, held)
    }
  }

  close(): void {
    this.#isClosed = true
    this.release(Number.POSITIVE_INFINITY)
    for (const batch of this.#options.probe?.end(this) ?? []) this.rank.stream.release(batch)
    this.rank.clients.delete(this)
  }

  /** Sends batches while the client has credits, one at a time, so that they leave in order. */
  async #sendAll(): Promise<void> {
    const { socket } = this.#options
    while (this.#credits > 0 && this.#run && !this.#isClosed && !this.#hasEnded) {
      const run = this.#run
      if (this.#nextStep >= this.rank.stream.sequence.batchesPerEpoch) {
        this.#hasEnded = true
        socket.write(formatSessionFrame(MESSAGE.epochEnd, { epoch: run.epoch }))
        return
      }
      this.#credits--
      const step = this.#nextStep
      this.#nextStep += run.workers
      const replayed = this.#options.probe?.replay(run.epoch, step)
      const batch = replayed ?? (await this.#read(run, step))
      if (!batch) continue
      this.#deliver(batch, run)
      if (this.#credits === 0 && !this.#hasEnded) this.#servedAtMs = performance.now()
    }
  }

  /** Undefined if the client has moved to another pass, which ended this read. */
  async #read(run: Run, step: number): Promise<LeasedBatch | undefined> {
    try {
      return await this.rank.stream.read(run.epoch, step, this.#options.hello.onLoss)
    } catch (error) {
      if (this.#run !== run) return undefined
      if (this.rank.run === run) throw error
      return this.#endPass()
    }
  }

  #deliver(batch: LeasedBatch, run: Run): void {
    if (!this.#isClosed && this.#run === run && this.rank.run === run) {
      this.#send(batch)
      this.#options.probe?.note(batch, performance.now())
      return
    }
    this.rank.stream.release(batch)
    if (!this.#isClosed && this.#run === run) this.#endPass()
  }

  /** Reports that the pass was given up for another. The connection stays: the client's next pass may be that one. */
  #endPass(): undefined {
    this.#run = undefined
    this.#options.socket.write(
      formatSessionFrame(MESSAGE.error, { code: 'FEED_GONE', message: PASS_HAS_ENDED }),
    )
  }

  #send(batch: LeasedBatch): void {
    const { socket, table, takeNotes } = this.#options
    for (const message of takeNotes()) socket.write(formatSessionFrame(MESSAGE.note, { message }))
    const { slots, epoch, step, offsets, lost } = batch
    const { sampleCount } = this.rank.stream.sequence.options
    const seq = this.#nextSeq++
    this.#leases.set(seq, batch)
    this.rank.skippedCount += lost.length
    const ids = slots.map((slot) => slot.sample)
    const lengths = ids.map((id) => table.lengths[id]!)
    const flags = slots.map((slot) => (slot.position >= sampleCount ? 1 : 0))
    socket.write(formatBatch({ seq, epoch, step, offsets, ids, lengths, flags, lost }))
  }

  /** Overwrites samples that may be evicted but have not been, which exposes views that outlive their batch. */
  #poison(batch: LeasedBatch, held: readonly Extent[]): void {
    const { space, file } = this.#options.poisoned!
    for (const [i, extent] of held.entries())
      if (space.extents.stateOf(extent) === 'done')
        file.poison(batch.offsets[i]!, space.extents.lengthOf(extent))
  }
}
