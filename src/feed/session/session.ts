import type { Socket } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import { explainSystemError } from '../../failure/system-failure.js'
import { formatsOf } from '../../samples/sample-encoding.js'
import { ARENA_BASE } from '../arena/arena-file.js'
import type { FeedEngine } from '../engine/feed-engine.js'
import { chooseIdentity } from '../plan/feed-state.js'
import { type HeadspaceProbe, REPLAYED_BATCHES } from './headspace.js'
import { type Hello, parseHello, parseStart, wholeNumber } from './hello.js'
import { parseTrainerTime, parseWorkerTime } from './parse-trainer-time.js'
import type { ServedRanks } from './served-ranks.js'
import { SessionReading } from './session-reading.js'
import { formatSessionFrame, MESSAGE, readSessionFrames, type SessionFrame } from './wire.js'

/** State that sessions share. */
export interface SessionHost {
  readonly engine: FeedEngine
  /** Takes the notes for the next client that is served, once. */
  readonly takeNotes: () => readonly string[]
  readonly ranks: ServedRanks
  /** Path where clients open the samples manifest. */
  readonly tablePath: string
  /** Whether to fill released samples with 0xDB. */
  readonly isPoisoning: boolean
  readonly stop: () => void
  /** See `SessionServerOptions`. */
  readonly probe: HeadspaceProbe | undefined
}

/** The feed's end of one connection. When it closes, the feed releases everything the client holds. */
export class Session {
  readonly #socket: Socket
  readonly #host: SessionHost
  readonly #frames = readSessionFrames('a client of the feed', (frame) => {
    if (this.#takeTime(frame)) return
    this.#queue = this.#queue.then(() => this.#handle(frame)).catch((error: unknown) => this.#fail(error))
  })
  #reading: SessionReading | undefined
  /** Handles messages one after the other. */
  #queue = Promise.resolve()
  #isClosed = false

  constructor(socket: Socket, host: SessionHost) {
    this.#socket = socket
    this.#host = host
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isClosed = true
      this.#reading?.close()
    })
  }

  /** Takes some bytes from the client. */
  take(chunk: Buffer): void {
    try {
      this.#frames.push(chunk)
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    const known = explainSystemError(error)
    const code = known?.code ?? 'INTERNAL'
    const message = known?.message ?? (error instanceof Error ? error.message : String(error))
    const hint = known?.hint
    this.#socket.end(formatSessionFrame(MESSAGE.error, { code, message, hint }))
  }

  /** Adds up times that a client tells, at once: behind a message that takes a while they would miss the last note. */
  #takeTime({ type, fields, payload }: SessionFrame): boolean {
    if (type === MESSAGE.waits) this.#host.ranks.addTime(parseTrainerTime(fields, payload))
    else if (type === MESSAGE.made) this.#host.ranks.times.addMade(parseWorkerTime(fields))
    else return false
    return true
  }

  async #handle({ type, fields, payload }: SessionFrame): Promise<void> {
    switch (type) {
      case MESSAGE.hello:
        return this.#greet(parseHello(fields))
      case MESSAGE.start:
        return this.#known().start(parseStart(fields))
      case MESSAGE.next:
        void this.#known()
          .grant(wholeNumber(fields, 'count'))
          .catch((error: unknown) => this.#fail(error))
        return
      case MESSAGE.release:
        return this.#known().release(wholeNumber(fields, 'seq'))
      case MESSAGE.get: {
        const ids = Array.from({ length: payload.length / 4 }, (_, i) => payload.readUInt32LE(4 * i))
        return this.#known().sendPicked(ids)
      }
      case MESSAGE.ids:
        return this.#sendIds(fields as Record<string, number>)
      case MESSAGE.status:
        this.#socket.write(formatSessionFrame(MESSAGE.status, {}, Buffer.from(this.#host.ranks.statusText())))
        return
      case MESSAGE.stop:
        return this.#host.stop()
      default:
        throw new DscError(
          'FEED_PROTOCOL',
          `a client sent message type ${type}, which this feed does not know`,
        )
    }
  }

  #known(): SessionReading {
    if (this.#reading) return this.#reading
    throw new DscError('FEED_PROTOCOL', 'HELLO comes first')
  }

  #greet(hello: Hello): void {
    const { engine, ranks, isPoisoning } = this.#host
    this.#checkExpectation(hello)
    const rank = ranks.join(hello)
    const depth = ranks.depthOf(hello)
    const probe = this.#host.probe?.ofWorker(hello)
    if (probe) engine.allowLeases(rank.stream, (depth + REPLAYED_BATCHES) * hello.workers)
    this.#reading = new SessionReading({
      socket: this.#socket,
      hello,
      rank,
      table: engine.table,
      takeNotes: this.#host.takeNotes,
      poisoned: isPoisoning && !engine.mapped ? engine.arena : undefined,
      probe,
      depth,
      keep: ranks.keepOf(hello),
    })
    rank.clients.add(this.#reading)
    this.#socket.write(formatSessionFrame(MESSAGE.welcome, this.#welcome(hello, this.#reading)))
  }

  async #sendIds({ epoch, step, count }: Record<string, number>): Promise<void> {
    const ids = await this.#known().rank.stream.idsOf(epoch!, step!, count!)
    this.#socket.write(formatSessionFrame(MESSAGE.ids, {}, new Uint8Array(Uint32Array.from(ids).buffer)))
  }

  #welcome(hello: Hello, { rank }: SessionReading): Readonly<Record<string, unknown>> {
    const { engine, ranks, tablePath } = this.#host
    const { table, arena, mapped, mix, seed, orderKind } = engine
    const { path, bytes, nonce } = arena.file
    const { stepsPerEpoch, batchesPerEpoch, globalBatch } = rank.stream.sequence
    return {
      arena: { path, bytes: ARENA_BASE + bytes, nonce },
      table: { path: tablePath, bytes: table.bytes.length },
      mapped: mapped && { folder: mapped.files.folder, descriptors: mapped.files.descriptors },
      ...engine.samplesIdentity,
      n: table.count,
      format: formatsOf(table.encodings),
      mix,
      seed,
      order: orderKind,
      stepsPerEpoch,
      batchesPerEpoch,
      globalBatch,
      depth: ranks.depthOf(hello),
      keep: ranks.keepOf(hello),
    }
  }

  #checkExpectation(expected: Hello): void {
    const { seed, orderKind, samplesIdentity } = this.#host.engine
    const feed = { seed, order: orderKind, ...samplesIdentity }
    for (const name of ['seed', 'order', chooseIdentity(expected, feed)] as const) {
      const [wanted, actual] = [expected[name], feed[name]]
      if (wanted === undefined || wanted === actual) continue
      throw new DscError(
        'FEED_STATE_MISMATCH',
        `this feed has ${name} ${actual}, the client expects ${wanted}`,
        { hint: 'start a feed with that setting, under another socket' },
      )
    }
  }
}
