import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Reservation } from '../../cache/prepare/reserve-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { FAILURES, type FailureCode } from '../../failure/failure-table.js'
import { readJsonLines } from '../../frames/lines.js'
import { askAgentOnce } from '../../http/ask-agent-once.js'
import type { PrepareCall, PrepareLine } from './prepare-route.js'

/** Credentials for calls to agents. */
export interface AgentAccess {
  readonly token: string | undefined
  /** Certificates that must have signed the agents' own; undefined: the system's. */
  readonly ca: string | undefined
}

/** How long an agent may be silent before the call fails, in ms. Agents write something at least every 2 s. */
const SILENCE_MS = 15_000

/** An agent's answer about a copy that it prepared for us. */
export type RemotelyPrepared = Extract<PrepareLine, { prepared: unknown }>['prepared']

interface NodeCall {
  readonly node: string
  readonly url: string
  readonly access: AgentAccess
  readonly call: PrepareCall
  readonly onProgress: (progress: Extract<PrepareLine, { progress: unknown }>['progress']) => void
  readonly signal: AbortSignal
}

/** Asks the agent of `node` to prepare a dataset there. Rejects with the failure there, naming the node. */
export async function prepareOnNode(options: NodeCall): Promise<RemotelyPrepared> {
  const line = await askAgent(options, '/v2/prepare', options.call)
  if ('prepared' in line) return line.prepared
  throw unexpected(options, line)
}

/** Asks the agent of `node` to reserve room for a dataset there. Rejects with the failure there, naming the node. */
export async function reserveOnNode(options: NodeCall): Promise<Reservation> {
  const line = await askAgent(options, '/v1/reserve', options.call)
  if ('reserved' in line) return line.reserved
  throw unexpected(options, line)
}

/** Asks the agent of `node` to cancel a reservation for which nothing was downloaded. */
export async function cancelOnNode(options: Omit<NodeCall, 'call' | 'onProgress'> & { copyId: string }) {
  const line = await askAgent({ ...options, onProgress: () => {} }, '/v1/cancel', { copyId: options.copyId })
  if (!('cancelled' in line)) throw unexpected(options, line)
}

function unexpected({ node, url }: Pick<NodeCall, 'node' | 'url'>, line: object): DscError {
  return new DscError(
    'AGENT_UNREACHABLE',
    `node ${node}: its agent at ${url} answered ${JSON.stringify(line)}`,
    {
      hint: 'run the same version of dsc on all nodes',
    },
  )
}

/** Posts a call and reads the lines of the answer until the last one. */
async function askAgent(
  options: Omit<NodeCall, 'call'>,
  path: string,
  call: unknown,
): Promise<Exclude<PrepareLine, { progress: unknown } | { error: unknown }>> {
  const { node, url, access, signal } = options
  let answer: IncomingMessage | undefined
  try {
    answer = await askAgentOnce(`${url}${path}`, {
      ...access,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call),
      connectTimeoutMs: 5000,
      silenceMs: SILENCE_MS,
      signal,
    })
    const { statusCode } = answer
    if (statusCode === 401) {
      throw new DscError('AGENT_REFUSED', `node ${node}: its agent at ${url} does not accept the token`, {
        hint: 'agent.tokenFile must hold the same token on all nodes',
      })
    }
    if (statusCode === 403) {
      throw new DscError(
        'AGENT_REFUSED',
        `node ${node}: its agent at ${url} lets the token of this machine only read`,
        {
          hint: 'agent.tokenFile here must begin with a token that may have datasets prepared (a line without `read`)',
        },
      )
    }
    if (statusCode !== 200) throw new Error(`answered ${statusCode}: ${(await text(answer)).slice(0, 500)}`)
    for await (const line of readJsonLines(answer, parsePrepareLine)) {
      if ('progress' in line) options.onProgress(line.progress)
      else if ('error' in line) throw failureOf(node, line.error)
      else return line
    }
    throw new Error('ended its answer in the middle')
  } catch (error) {
    if (error instanceof DscError) throw error
    if (signal.aborted) {
      throw new DscError('INTERRUPTED', `stopped by ${String(signal.reason)} while node ${node} prepared`, {
        hint: 'run the same command again: it goes on where it stopped',
      })
    }
    const { message } = error as Error
    throw new DscError('AGENT_UNREACHABLE', `node ${node}: its agent at ${url} does not answer: ${message}`, {
      hint: `is dsc agent running on ${node}? curl ${url}/healthz`,
      cause: error,
    })
  } finally {
    answer?.destroy()
  }
}

/** Accepts unknown fields, because agents of other versions may send more. Throws if the line is not an object. */
function parsePrepareLine(raw: unknown): PrepareLine {
  if (typeof raw === 'object' && raw !== null) return raw as PrepareLine
  throw new TypeError('expected an object')
}

function failureOf(node: string, error: Extract<PrepareLine, { error: unknown }>['error']): DscError {
  const code = Object.hasOwn(FAILURES, error.code) ? (error.code as FailureCode) : 'AGENT_UNREACHABLE'
  // The name of another node may begin with this one's.
  const isNamed = error.message
    .split(`node ${node}`)
    .slice(1)
    .some((rest) => !/^\.?[\w-]/.test(rest))
  const message = isNamed ? error.message : `node ${node}: ${error.message}`
  return new DscError(code, message, { hint: error.hint, id: error.id })
}
