import { once } from 'node:events'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { DscError } from '../../failure/dsc-error.js'
import { formatHostPort, type HostPort } from '../../model/host-port.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import { Gateway, type GatewayOptions } from './gateway.js'
import type { GatewayCount } from './gateway-counts.js'

/** Threads that answer clients; each takes some 40 MB and one processor at most. */
const MAX_THREADS = 4

/** What the module of a thread begins with. */
export interface GatewayThreadData {
  /** As `--config` names it. */
  readonly configPath: string | undefined
  readonly options: Pick<
    GatewayOptions,
    'listen' | 'declared' | 'keepMs' | 'names' | 'ranges' | 'tokens' | 'users'
  >
}

type GatewayThreadsOptions = Omit<GatewayOptions, 'isShared'> & Pick<GatewayThreadData, 'configPath'>

/** What a thread says. */
export type GatewayThreadReply = { readonly counts: readonly GatewayCount[] } | { readonly note: string }

/**
 * The gateway of a node: one in this thread, and one in each of some others that listen at the same port. Each knows
 * the record for itself; what they share of a dataset (its staging, its leases) they share as processes do.
 */
export class GatewayThreads {
  readonly #first: Gateway
  readonly #others: readonly BackgroundThread<number, GatewayThreadReply>[]
  #isStopping = false

  private constructor(first: Gateway, others: number, options: GatewayThreadsOptions) {
    this.#first = first
    const { configPath, listen, declared, keepMs, names, ranges, tokens, users } = options
    const own = {
      declared,
      keepMs,
      names,
      ranges,
      tokens,
      users,
      listen: { host: listen.host, port: first.port },
    }
    const data: GatewayThreadData = { configPath, options: own }
    this.#others = Array.from({ length: others }, () => this.#start(data, options))
  }

  /** Begins to listen. Rejects with CONFIG_INVALID where it cannot. */
  static async open(options: GatewayThreadsOptions): Promise<GatewayThreads> {
    const { listen } = options
    const others = Math.min(MAX_THREADS, availableParallelism()) - 1
    try {
      if (others > 0) await requireFreePort(listen)
      const first = await Gateway.open({ ...options, isShared: others > 0 })
      return new GatewayThreads(first, others, options)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new DscError(
        'CONFIG_INVALID',
        `agent.gateway: cannot listen at ${formatHostPort(listen)} (${code ?? error})`,
        {
          hint: 'is another gateway running? else set agent.gateway.listen in dsc.yaml, or --gateway',
          cause: error,
        },
      )
    }
  }

  /** What clients set as their endpoint. */
  get url(): string {
    return this.#first.url
  }

  /** As `Gateway.stop`, of all threads. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    for (const thread of this.#others) {
      thread.ref()
      thread.post(graceMs)
    }
    await this.#first.stop(graceMs)
    await Promise.all(this.#others.map(({ ended }) => ended))
  }

  #start(
    data: GatewayThreadData,
    { onCounts, note }: GatewayThreadsOptions,
  ): BackgroundThread<number, GatewayThreadReply> {
    return new BackgroundThread(new URL('../../gateway-thread.js', import.meta.url), {
      data,
      onReply: (reply) => ('counts' in reply ? onCounts(reply.counts) : note(reply.note)),
      onFailure: (error) => {
        if (!this.#isStopping) throw error // as a failure of this thread would end the agent
      },
    })
  }
}

/** Of sockets that share a port the kernel refuses none of the same user: another agent is found by not sharing it. */
async function requireFreePort({ host, port }: HostPort): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(port, host, resolve)
  })
  probe.close()
  await once(probe, 'close')
}
