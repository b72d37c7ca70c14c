import type { ServerResponse } from 'node:http'
import type { Cache } from '../../cache/cache.js'
import { ClusterReader, type ClusterStatus } from '../../cache/status/cluster-status.js'
import { type StatusWatch, watchStatus } from '../../cache/status/watch-status.js'
import { DscError } from '../../failure/dsc-error.js'
import { PAGE_DATA_HEADERS } from './page-files.js'
import { summarize } from './page-windows.js'

/** The same as for the live screen, but at most once a second: every page requests its data again. */
const INTERVALS = { pollMs: 1000, quietMs: 5000, pauseMs: 1000 }
/** How long to keep reading the status without a viewer, in ms; after that, its memory is freed. */
const KEEP_MS = 60_000
/** Time between heartbeats of a stream, in ms: proxies, and the agent itself, cut off silent ones. */
const HEARTBEAT_MS = 15_000
/** Maximum number of viewers, above which new ones are turned away: the agent's first task is to serve nodes. */
const MAX_STREAMS = 100
/** How long to wait for the first reading, in ms. */
const PATIENCE_MS = 10_000

/** Follows the cluster while somebody views this agent's page, and updates all viewers. */
export class StatusPage {
  readonly #cache: Cache
  readonly #streams = new Set<ServerResponse>()
  readonly #waiting = new Set<() => void>()
  #watch: StatusWatch | undefined
  #status: ClusterStatus | undefined
  #problem: string | undefined
  #revision = 0
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(cache: Cache) {
    this.#cache = cache
  }

  /** The cluster at its last reading; starts reading if needed. Rejects until the record has answered once. */
  async status(): Promise<ClusterStatus> {
    this.#follow()
    if (!this.#status && this.#problem === undefined) await this.#nextReading()
    if (this.#status) return this.#status
    throw new DscError(
      'RECORD_UNAVAILABLE',
      this.#problem ?? 'the record has not answered yet; the page goes on asking',
    )
  }

  /** Streams changes to one viewer as server-sent events, until the viewer leaves. */
  stream(response: ServerResponse): void {
    if (this.#streams.size >= MAX_STREAMS || this.#isClosed) {
      response.writeHead(503, { ...PAGE_DATA_HEADERS, 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: `${MAX_STREAMS} others look at this page` } }))
      return
    }
    response.writeHead(200, { ...PAGE_DATA_HEADERS, 'content-type': 'text/event-stream' })
    response.flushHeaders()
    this.#streams.add(response)
    const heartbeat = setInterval(() => response.write(':\n\n'), HEARTBEAT_MS)
    response.once('close', () => {
      clearInterval(heartbeat)
      this.#streams.delete(response)
      this.#follow()
    })
    this.#follow()
    if (this.#status || this.#problem !== undefined) response.write(this.#describe())
  }

  /** Ends all streams: those who may still look ask again. */
  endStreams(): void {
    for (const stream of this.#streams) stream.end()
  }

  /** Ends all streams and stops reading. */
  close(): void {
    this.#isClosed = true
    this.endStreams()
    this.#forget()
  }

  /** Reads while there are viewers, and a while longer: a reloaded page finds it as it was. */
  #follow(): void {
    clearTimeout(this.#idle)
    if (this.#isClosed) return
    if (this.#streams.size === 0) {
      this.#idle = setTimeout(() => this.#forget(), KEEP_MS)
      this.#idle.unref()
    }
    const { record, node, root } = this.#cache
    this.#watch ??= watchStatus(
      new ClusterReader({ record, ownNode: { node, cacheRoot: root }, nowMs: () => record.nowMs() }),
      INTERVALS,
      {
        show: (status) => this.#tell(status, undefined),
        fail: (error) => this.#tell(this.#status, error instanceof Error ? error.message : String(error)),
      },
    )
  }

  #forget(): void {
    clearTimeout(this.#idle)
    this.#watch?.stop()
    this.#watch = undefined
    this.#status = undefined
    this.#problem = undefined
    this.#release()
  }

  #tell(status: ClusterStatus | undefined, problem: string | undefined): void {
    this.#status = status
    this.#problem = problem
    this.#revision += 1
    this.#release()
    if (this.#streams.size === 0) return
    const message = this.#describe()
    // Skip slow viewers: each gets the newest status once it has received everything before.
    for (const stream of this.#streams) if (!stream.writableNeedDrain) stream.write(message)
  }

  #release(): void {
    for (const go of this.#waiting) go()
    this.#waiting.clear()
  }

  #nextReading(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS)
      this.#waiting.add(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  #describe(): string {
    const told = {
      dsc: 1,
      revision: this.#revision,
      node: this.#cache.node,
      problem: this.#problem ?? null,
      ...(this.#status ? summarize(this.#status) : {}),
    }
    return `event: status\ndata: ${JSON.stringify(told)}\n\n`
  }
}
