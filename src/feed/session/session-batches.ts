import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { openOrClose } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { openSampleTable, type SampleTable } from '../../samples/sample-table.js'
import type { BatchReader, ReadBatch } from '../batches/batch-reader.js'
import type { TrainerTime } from '../batches/trainer-time.js'
import type { StreamShape } from '../engine/feed-engine.js'
import type { FeedIdentity } from '../plan/feed-state.js'
import type { OrderKind } from '../plan/order.js'
import type { LossRule } from '../stream/batch-stream.js'
import { type ConnectionOptions, FeedConnection } from './feed-connection.js'
import { MESSAGE, parseBatch } from './wire.js'

/** Values the feed must have; undefined: any. */
interface Expected {
  readonly seed: number | undefined
  readonly order: OrderKind | undefined
  readonly fingerprint?: string | null | undefined
  readonly listing?: string | null | undefined
}

interface SessionBatchesOptions extends ConnectionOptions, Expected {
  readonly shape: StreamShape
  readonly onLoss: LossRule
}

/** A feed's description of itself. */
interface Welcome {
  readonly arena: { readonly path: string; readonly nonce: string }
  readonly table: { readonly path: string; readonly bytes: number }
  /** Files that samples are read from instead of the arena, indexed by the table's file numbers. */
  readonly mapped?: { readonly folder: string; readonly descriptors: readonly number[] }
  readonly fingerprint: string | null
  readonly listing: string | null
  readonly n: number
  readonly mix: FeedIdentity['mix']
  readonly seed: number
  readonly order: OrderKind
  readonly stepsPerEpoch: number
  readonly batchesPerEpoch: number
  readonly globalBatch: number
  /** Number of batches that this client may have on their way or in use. */
  readonly depth: number
}

/** A session: the connection, and the memory that the feed shares. */
interface Session {
  readonly connection: FeedConnection
  readonly welcome: Welcome
  readonly arenaFd: number
  /** Opened on first use. */
  readonly mappedFds: Map<number, number>
}

/**
 * The batches of a rank from the feed that listens on a socket. If that feed ends, the next pass connects to the feed
 * that listens there by then, which must feed the same samples in the same order.
 */
export class SessionBatches implements BatchReader {
  readonly identity: FeedIdentity
  readonly #options: SessionBatchesOptions
  readonly #table: SampleTable
  #session: Session

  private constructor(options: SessionBatchesOptions, session: Session) {
    const { fingerprint, listing, n, order, seed, mix, table } = session.welcome
    this.#options = options
    this.#session = session
    this.#table = openSampleTable(readFileSync(table.path).subarray(0, table.bytes))
    this.identity = { fingerprint, listing, n, order, seed, last: options.shape.last, mix }
  }

  static async open(options: SessionBatchesOptions): Promise<SessionBatches> {
    return new SessionBatches(options, await openSession(options, options))
  }

  get stepsPerEpoch(): number {
    return this.#session.welcome.stepsPerEpoch
  }

  get batchesPerEpoch(): number {
    return this.#session.welcome.batchesPerEpoch
  }

  get globalBatch(): number {
    return this.#session.welcome.globalBatch
  }

  async start(epoch: number, step: number): Promise<void> {
    if (this.#session.connection.isEnded) {
      const again = await openSession(this.#options, this.#session.welcome)
      await endSession(this.#session)
      this.#session = again
    }
    const { connection, welcome } = this.#session
    connection.send(MESSAGE.start, { epoch, step, run: randomUUID() })
    // Batches of the previous pass may still be in flight; the feed has given them up.
    while ((await connection.receive()).type !== MESSAGE.started) {}
    connection.send(MESSAGE.next, { count: welcome.depth })
  }

  async read(): Promise<ReadBatch> {
    const { connection } = this.#session
    const frame = await connection.receive()
    if (frame.type !== MESSAGE.batch)
      throw new DscError('FEED_PROTOCOL', `the feed sent message type ${frame.type} instead of a batch`)
    const { seq, ids, offsets, lengths, flags, lost } = parseBatch(frame.payload)
    const items = ids.map((id, i) => {
      const data = Buffer.allocUnsafe(lengths[i]!)
      readSync(this.#descriptorOf(id), data, 0, data.length, offsets[i]!)
      return { id, name: this.#table.nameOf(id), data, isPadded: flags[i] === 1 }
    })
    connection.send(MESSAGE.release, { seq })
    connection.send(MESSAGE.next, { count: 1 })
    return { items, lost }
  }

  tell(time: Omit<TrainerTime, 'rank'>): void {
    const { connection } = this.#session
    if (!connection.isEnded) connection.send(MESSAGE.waits, { rank: this.#options.shape.rank, ...time })
  }

  /** Descriptor of the file that holds a sample. */
  #descriptorOf(sample: number): number {
    const { welcome, arenaFd, mappedFds } = this.#session
    if (!welcome.mapped) return arenaFd
    const { folder, descriptors } = welcome.mapped
    const file = this.#table.files[sample]!
    const known = mappedFds.get(file) ?? openSync(`${folder}/${descriptors[file]}`, 'r')
    mappedFds.set(file, known)
    return known
  }

  close(): Promise<void> {
    return endSession(this.#session)
  }
}

async function openSession(options: SessionBatchesOptions, expected: Expected): Promise<Session> {
  return openOrClose(async (closers) => {
    const connection = new FeedConnection(options)
    closers.add(() => connection.close())
    const { batchSize, ...shape } = options.shape
    const { seed, order, fingerprint, listing } = expected
    const onError = options.onLoss
    const expectation = { seed, order, fingerprint, listing }
    const hello = { pid: process.pid, batch: batchSize, onError }
    connection.send(MESSAGE.hello, { ...hello, ...shape, ...expectation })
    const welcome = (await connection.receive()).fields as unknown as Welcome
    return { connection, welcome, arenaFd: openArena(welcome), mappedFds: new Map() }
  })
}

async function endSession({ connection, arenaFd, mappedFds }: Session): Promise<void> {
  await connection.close()
  for (const each of mappedFds.values()) closeSync(each)
  closeSync(arenaFd)
}

function openArena({ arena }: Welcome): number {
  const fd = openSync(arena.path, 'r')
  const nonce = Buffer.alloc(arena.nonce.length)
  readSync(fd, nonce, 0, nonce.length, 0)
  if (nonce.toString('latin1') === arena.nonce) return fd
  closeSync(fd)
  throw new DscError('FEED_PROTOCOL', `${arena.path} is not the arena of the feed that answers`, {
    hint: 'run trainer and feed in one process namespace',
  })
}
