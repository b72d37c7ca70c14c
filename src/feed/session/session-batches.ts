import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import type { BatchReader, ReadBatch } from '../batch-reader.js'
import type { StreamShape } from '../feeder.js'
import type { FeedIdentity } from '../plan/feed-state.js'
import type { OrderKind } from '../plan/order.js'
import { openSampleTable, type SampleTable } from '../samples/sample-table.js'
import { type ConnectionOptions, dialFeed, type FeedConnection } from './feed-connection.js'
import { MESSAGE, parseBatch, SESSION_PROTOCOL } from './wire.js'

export interface SessionBatchesOptions extends ConnectionOptions {
  readonly shape: StreamShape
  readonly isSkipping: boolean
  /** What the feed must have; undefined: whatever it has. */
  readonly seed: number | undefined
  readonly order: OrderKind | undefined
}

/** What a feed says of itself. */
interface Welcome {
  readonly arena: { readonly path: string; readonly nonce: string }
  readonly table: { readonly path: string; readonly bytes: number }
  readonly fingerprint: string
  readonly n: number
  readonly mix: FeedIdentity['mix']
  readonly seed: number
  readonly order: OrderKind
  readonly stepsPerEpoch: number
  readonly batchesPerEpoch: number
  readonly globalBatch: number
  /** Batches that this client may have on their way or in use. */
  readonly depth: number
}

/** A session: the connection, and the memory that the feed shares. */
interface Session {
  readonly connection: FeedConnection
  readonly welcome: Welcome
  readonly arenaFd: number
}

/**
 * The batches of a rank out of the feed that listens on a socket. After that feed is gone, the next pass asks the one
 * that listens there then, which must feed the same samples in the same order.
 */
export async function openSessionBatches(options: SessionBatchesOptions): Promise<BatchReader> {
  const { shape, isSkipping, seed, order } = options
  let session = await openSession(options, { seed, order })
  const { welcome } = session
  const table = readTable(welcome)
  const end = () => {
    session.connection.close()
    closeSync(session.arenaFd)
  }
  return {
    identity: {
      fingerprint: welcome.fingerprint,
      n: welcome.n,
      order: welcome.order,
      seed: welcome.seed,
      last: shape.last,
      mix: welcome.mix,
    },
    stepsPerEpoch: welcome.stepsPerEpoch,
    batchesPerEpoch: welcome.batchesPerEpoch,
    globalBatch: welcome.globalBatch,
    async start(epoch, step) {
      if (session.connection.isEnded) {
        const again = await openSession(options, welcome)
        end()
        session = again
      }
      const { connection } = session
      connection.sendJson(MESSAGE.start, { epoch, step, run: randomUUID() })
      // Batches of the pass before may still be on their way; the feed has given them up.
      while ((await connection.receive()).type !== MESSAGE.started) {}
      connection.sendNumber(MESSAGE.next, session.welcome.depth)
    },
    async read(): Promise<ReadBatch> {
      const { connection, arenaFd } = session
      const frame = await connection.receive()
      if (frame.type !== MESSAGE.batch)
        throw new DscError('FEED_PROTOCOL', `the feed sent message type ${frame.type} instead of a batch`)
      const { seq, ids, offsets, lengths, flags, lost } = parseBatch(frame.payload)
      const items = ids.map((id, i) => {
        const data = Buffer.allocUnsafe(lengths[i]!)
        readSync(arenaFd, data, 0, data.length, offsets[i]!)
        return { id, name: table.nameOf(id), data, isPadded: flags[i] === 1 }
      })
      connection.sendNumber(MESSAGE.release, seq)
      connection.sendNumber(MESSAGE.next, 1)
      return { items, lost }
    },
    async close() {
      end()
    },
  }

  async function openSession(
    connectionOptions: ConnectionOptions,
    expected: { readonly [Name in 'seed' | 'order' | 'fingerprint']?: Welcome[Name] | undefined },
  ): Promise<Session> {
    const connection = dialFeed(connectionOptions)
    try {
      const { rank, world, replicate, batchSize, last, assign } = shape
      const { seed, order, fingerprint } = expected
      connection.sendJson(MESSAGE.hello, {
        ...{ proto: SESSION_PROTOCOL, pid: process.pid },
        ...{ rank, world, replicate, batch: batchSize, last, assign },
        onError: isSkipping ? 'skip' : 'raise',
        ...{ seed, order, fingerprint },
      })
      const welcome = JSON.parse((await connection.receive()).payload.toString()) as Welcome
      return { connection, welcome, arenaFd: openArena(welcome) }
    } catch (error) {
      connection.close()
      throw error
    }
  }
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

function readTable({ table }: Welcome): SampleTable {
  return openSampleTable(readFileSync(table.path).subarray(0, table.bytes))
}
