import { closeSync, mkdirSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { formatMetrics } from '../feed-metrics.js'
import type { OpenedFeeder } from '../open-feeder.js'
import { planDepth } from '../plan/memory-plan.js'
import type { Hello } from './hello.js'
import { type RankState, type SessionHost, serveSession } from './session.js'

export interface SessionServerOptions {
  readonly opened: OpenedFeeder
  /** Unix socket to listen on; at most 107 bytes. */
  readonly socketPath: string
  /** Fills released samples with 0xDB, so that a client that reads on sees it. */
  readonly isPoisoning?: boolean
  /** Called when the last client leaves, and whenever one comes. */
  readonly onClients?: (count: number) => void
  readonly onStop?: () => void
}

/** A feed that clients of this machine can connect to. */
export interface SessionServer {
  readonly socketPath: string
  statusText(): string
  close(): Promise<void>
}

export async function openSessionServer(options: SessionServerOptions): Promise<SessionServer> {
  const { opened, socketPath } = options
  const { feeder, table } = opened
  const ranks = new Map<number, RankState>()
  const tableFd = shareBytes(table.bytes)
  const openedAtMs = performance.now()
  let clients = 0

  const depthOf = ({ depth, keep, batchSize, workers, world }: Hello): number => {
    const batchBytes = (table.totalBytes / table.count) * batchSize
    const memoryBytes = opened.arenaFile.bytes
    return (depth ?? planDepth({ batchBytes, memoryBytes, clients: workers * world })) + keep
  }
  const joinRank = (hello: Hello, client: object): RankState => {
    const { rank, world, replicate, batchSize, last, assign } = hello
    const key = JSON.stringify([world, replicate, batchSize, last, assign])
    const held = ranks.get(rank)
    if (held && held.key === key) {
      held.clients.add(client)
      feeder.allowLeases(held.stream, depthOf(hello) * hello.workers)
      return held
    }
    if (held && held.clients.size > 0)
      throw new DscError(
        'FEED_PROTOCOL',
        `rank ${rank} is read in batches of ${held.stream.sequence.options.batchSize} of ${held.stream.sequence.options.world} ranks by another client, not ${batchSize} of ${world}`,
        { hint: 'close the other loader first, or start a feed of its own (DSC_FEED_JOB)' },
      )
    if (held) feeder.closeStream(held.stream)
    ranks.delete(rank)
    const stream = feeder.openStream(
      { rank, world, replicate, batchSize, last, assign },
      depthOf(hello) * hello.workers,
    )
    const state: RankState = { key, stream, run: undefined, clients: new Set([client]), skippedCount: 0 }
    ranks.set(rank, state)
    return state
  }
  const statusText = () =>
    formatMetrics({
      feeder,
      ranks: [...ranks].map(([rank, { stream, clients, skippedCount }]) => ({
        rank,
        stream,
        clients: clients.size,
        skipped: skippedCount,
      })),
      uptimeSeconds: (performance.now() - openedAtMs) / 1000,
    })
  const host: SessionHost = {
    opened,
    tablePath: `/proc/${process.pid}/fd/${tableFd}`,
    isPoisoning: options.isPoisoning ?? false,
    joinRank,
    depthOf,
    leaveRank: (rank, client) => void rank.clients.delete(client),
    statusText,
    stop: () => options.onStop?.(),
  }
  const sockets = new Set<{ destroy(): void }>()
  const server = createServer((socket) => {
    sockets.add(socket)
    options.onClients?.(++clients)
    socket.on('close', () => {
      sockets.delete(socket)
      options.onClients?.(--clients)
    })
    serveSession(socket, host)
  })
  await listen(server, socketPath)
  return {
    socketPath,
    statusText,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      closeSync(tableFd)
    },
  }
}

/** A nameless file with `bytes`, for clients to map. */
function shareBytes(bytes: Uint8Array): number {
  const path = join(tmpdir(), `dsc-samples-${process.pid}-${process.hrtime.bigint()}`)
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, Math.min(1 << 24, bytes.length - at))
  return fd
}

/** Listens for this user only; takes over a socket that a dead feed left behind. */
async function listen(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > 107)
    throw new DscError('USAGE', `the socket path ${path} is longer than 107 bytes`, {
      hint: '--socket <shorter path>',
    })
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  if (await isAnswering(path))
    throw new DscError('FEED_PROTOCOL', `another feed is listening on ${path}`, {
      hint: 'use it, stop it (dsc feed status --stop), or choose another --socket',
    })
  try {
    unlinkSync(path)
  } catch {}
  const mask = process.umask(0o177)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
  } finally {
    process.umask(mask)
  }
}

function isAnswering(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
