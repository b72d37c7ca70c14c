import type { Socket } from 'node:net'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import type { FeedStream, LeasedBatch } from '../feed-stream.js'
import type { OpenedFeeder } from '../open-feeder.js'
import type { Extent } from '../plan/arena-zone.js'
import { type Hello, parseHello, parseStart } from './hello.js'
import { placeSession, type Run } from './rank-runs.js'
import {
  createFrameReader,
  type Frame,
  formatBatch,
  formatFrame,
  formatJsonFrame,
  MESSAGE,
  parseJsonPayload,
  SESSION_PROTOCOL,
} from './wire.js'

/** The stream of a rank and the clients that read it. */
export interface RankState {
  readonly key: string
  readonly stream: FeedStream
  run: Run | undefined
  readonly clients: Set<object>
  /** Samples that were left out of batches. */
  skippedCount: number
}

/** What sessions share. */
export interface SessionHost {
  readonly opened: OpenedFeeder
  /** Where clients open the samples manifest. */
  readonly tablePath: string
  readonly isPoisoning: boolean
  /** Finds the rank's stream or opens it; throws when the rank is served in another shape. */
  joinRank(hello: Hello, client: object): RankState
  /** Batches that the client of `hello` may hold at once. */
  depthOf(hello: Hello): number
  leaveRank(rank: RankState, client: object): void
  statusText(): string
  stop(): void
}

/** Whether it has not been evicted: then another sample may be arriving in its place. */
const isInPlace = (extent: Extent) => (extent.previous ? extent.previous.next : extent.zone.first) === extent

/** Serves one connection until it closes. Whatever it holds is given back then. */
export function serveSession(socket: Socket, host: SessionHost): void {
  const { arenaFile, table } = host.opened
  const leases = new Map<number, LeasedBatch>()
  let hello: Hello | undefined
  let rank: RankState | undefined
  let run: Run | undefined
  let nextStep = 0
  let credits = 0
  let nextSeq = 1
  let isSending = false
  let isClosed = false
  let hasEnded = false
  /** Since when the client has all the batches that it asked for. */
  let servedAtMs: number | undefined
  const self = {
    get pid() {
      return hello?.pid ?? 0
    },
    get isReading() {
      // The end of an epoch is sent in advance, too: a client reads on until its last batch is the one in use.
      return !isClosed && (!hasEnded || leases.size > 1 + (hello?.keep ?? 0))
    },
  }

  const fail = (error: unknown) => {
    if (isClosed) return
    const code = isDscError(error) ? error.code : 'INTERNAL'
    const message = error instanceof Error ? error.message : String(error)
    const hint = isDscError(error) ? error.hint : undefined
    socket.end(formatJsonFrame(MESSAGE.error, { code, message, hint }))
  }
  const sendBatch = (batch: LeasedBatch) => {
    const seq = nextSeq++
    leases.set(seq, batch)
    rank!.skippedCount += batch.lost.length
    socket.write(
      formatBatch({
        seq,
        epoch: batch.epoch,
        step: batch.step,
        offsets: batch.offsets,
        ids: batch.slots.map((slot) => slot.sample),
        lengths: batch.slots.map((slot) => table.lengths[slot.sample]!),
        flags: batch.slots.map((slot) =>
          slot.position >= rank!.stream.sequence.options.sampleCount ? 1 : 0,
        ),
        lost: batch.lost,
      }),
    )
  }
  /** Sends batches while the client has credits. One at a time, so that they leave in order. */
  const send = async () => {
    if (isSending || !rank) return
    isSending = true
    try {
      while (credits > 0 && run && !isClosed && !hasEnded) {
        const reading = run
        if (nextStep >= rank.stream.sequence.batchesPerEpoch) {
          hasEnded = true
          socket.write(formatJsonFrame(MESSAGE.epochEnd, { epoch: reading.epoch }))
          return
        }
        credits--
        const step = nextStep
        nextStep += reading.workers
        const batch = await rank.stream
          .read(reading.epoch, step, hello?.isSkipping)
          .catch((error: unknown) => {
            if (run === reading) throw error
            return undefined // the client went elsewhere meanwhile, and took the ground from under this read
          })
        if (!batch) continue
        if (isClosed || run !== reading) rank.stream.release(batch)
        else if (rank.run !== reading) {
          rank.stream.release(batch)
          throw new DscError(
            'FEED_GONE',
            'another loader of this rank has begun a new pass; this one has ended',
          )
        } else sendBatch(batch)
        if (credits === 0 && !hasEnded) servedAtMs = performance.now()
      }
    } catch (error) {
      fail(error)
    } finally {
      isSending = false
    }
  }
  const release = (upTo: number) => {
    for (const [seq, batch] of leases) {
      if (seq > upTo) break
      leases.delete(seq)
      const held = batch.slots.map((slot) => slot.extent!)
      rank!.stream.release(batch)
      if (host.isPoisoning) poison(batch, held)
    }
  }
  /** Overwrites what may be evicted; a view that outlives its batch then shows it. */
  const poison = (batch: LeasedBatch, held: readonly Extent[]) => {
    for (const [i, extent] of held.entries())
      if (extent.state === 'done' && isInPlace(extent)) arenaFile.poison(batch.offsets[i]!, extent.length)
  }
  const welcome = () => {
    const { sequence } = rank!.stream
    return {
      proto: SESSION_PROTOCOL,
      arena: { path: arenaFile.path, bytes: arenaFile.bytes + 4096, nonce: arenaFile.nonce },
      table: { path: host.tablePath, bytes: table.bytes.length },
      fingerprint: table.fingerprint,
      n: table.count,
      format: table.format,
      mix: host.opened.mix,
      seed: host.opened.seed,
      order: host.opened.orderKind,
      stepsPerEpoch: sequence.stepsPerEpoch,
      batchesPerEpoch: sequence.batchesPerEpoch,
      globalBatch: sequence.globalBatch,
      depth: host.depthOf(hello!),
    }
  }
  const checkExpectation = (expected: Hello) => {
    const feed = { seed: host.opened.seed, order: host.opened.orderKind, fingerprint: table.fingerprint }
    for (const [name, actual] of Object.entries(feed)) {
      const wanted = expected[name as keyof typeof feed]
      if (wanted !== undefined && wanted !== actual)
        throw new DscError(
          'FEED_STATE_MISMATCH',
          `this feed has ${name} ${actual}, the client expects ${wanted}`,
          {
            hint: 'start a feed with that setting, under another socket',
          },
        )
    }
  }

  const handle = async ({ type, payload }: Frame): Promise<void> => {
    switch (type) {
      case MESSAGE.hello: {
        hello = parseHello(parseJsonPayload(payload))
        checkExpectation(hello)
        rank = host.joinRank(hello, self)
        socket.write(formatJsonFrame(MESSAGE.welcome, welcome()))
        return
      }
      case MESSAGE.start: {
        if (!rank || !hello) throw new DscError('FEED_PROTOCOL', 'START before HELLO')
        const start = parseStart(parseJsonPayload(payload))
        release(Number.POSITIVE_INFINITY)
        hasEnded = false
        const placed = placeSession(rank.run, start, hello.worker, hello.workers, self)
        run = placed.run
        rank.run = run
        nextStep = run.step + hello.worker
        credits = 0
        servedAtMs = undefined
        if (placed.isNew) await rank.stream.start(run.epoch, run.step)
        socket.write(formatJsonFrame(MESSAGE.started, { epoch: run.epoch, step: run.step }))
        return
      }
      case MESSAGE.next:
        credits += payload.readUInt32LE(0)
        if (rank && servedAtMs !== undefined)
          rank.stream.meter.stallMs.client += performance.now() - servedAtMs
        servedAtMs = undefined
        void send()
        return
      case MESSAGE.release:
        release(payload.readUInt32LE(0))
        return
      case MESSAGE.get: {
        const ids = Array.from({ length: payload.length / 4 }, (_, i) => payload.readUInt32LE(4 * i))
        sendBatch(await rank!.stream.pick(ids))
        return
      }
      case MESSAGE.ids: {
        const { epoch, step, count } = parseJsonPayload(payload) as Record<string, number>
        const ids = await rank!.stream.idsOf(epoch!, step!, count!)
        socket.write(formatFrame(MESSAGE.ids, new Uint8Array(Uint32Array.from(ids).buffer)))
        return
      }
      case MESSAGE.status:
        socket.write(formatFrame(MESSAGE.status, Buffer.from(host.statusText())))
        return
      case MESSAGE.stop:
        host.stop()
        return
      default:
        throw new DscError(
          'FEED_PROTOCOL',
          `a client sent message type ${type}, which this feed does not know`,
        )
    }
  }

  const readFrames = createFrameReader()
  let isFirstChunk = true
  let queue = Promise.resolve()
  socket.on('data', (chunk: Buffer) => {
    if (isFirstChunk && chunk.subarray(0, 4).toString('latin1') === 'GET ') {
      const body = host.statusText()
      socket.end(`HTTP/1.0 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\n\r\n${body}`)
      return
    }
    isFirstChunk = false
    try {
      for (const frame of readFrames(chunk)) queue = queue.then(() => handle(frame)).catch(fail)
    } catch (error) {
      fail(error)
    }
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    isClosed = true
    if (rank) {
      release(Number.POSITIVE_INFINITY)
      host.leaveRank(rank, self)
    }
  })
}
