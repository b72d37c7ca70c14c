import { once } from 'node:events'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { DscError } from '../../failure/dsc-error.js'
import { formatHostPort, type HostPort } from '../../model/host-port.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import { Gateway } from './gateway.js'
import type { GatewayOptions } from './gateway-options.js'
import type { GatewayThreadData, GatewayThreadReply } from './gateway-thread-data.js'

/** Maximum number of threads that answer clients; each takes about 40 MB and at most one processor. */
const MAX_THREADS = 4

type GatewayThreadsOptions = Omit<GatewayOptions, 'isShared'> & Pick<GatewayThreadData, 'configPath'>

/**
 * The gateway of a node: one in this thread, and one in each of several others that listen on the same port. Each has
 * its own connection to the record; they share a dataset's download and leases as processes do.
 */
export class GatewayThreads {
  readonly #first: Gateway
  readonly #others: readonly BackgroundThread<number, GatewayThreadReply>[]
  #isStopping = false

  private constructor(first: Gateway, others: number, options: GatewayThreadsOptions) {
    this.#first = first
    const { configPath, listen, declared, keepMs, names, ranges, tokens, users, rules } = options
    const own = {
      declared,
      keepMs,
      names,
      ranges,
      tokens,
      users,
      rules,
      listen: { host: listen.host, port: first.port },
    }
    const data: GatewayThreadData = { configPath, options: own }
    this.#others = Array.from({ length: others }, () => this.#start(data, options))
  }

  /** Starts listening. Rejects with CONFIG_INVALID if it cannot. */
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

  /** The endpoint that clients set. */
  get url(): string {
    return this.#first.url
  }

  /** Does the same as `Gateway.stop`, for all threads. */
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
        if (!this.#isStopping) throw error // ends the agent, as a failure of this thread would
      },
    })
  }
}

/**
 * Fails if the port is taken. The kernel lets all sockets of one user share a port, so the probe does not share it:
 * that is how it detects another agent.
 */
async function requireFreePort({ host, port }: HostPort): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  await once(probe.listen(port, host), 'listening')
  probe.close()
  await once(probe, 'close')
}
