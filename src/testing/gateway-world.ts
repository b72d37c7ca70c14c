import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type Agent, get, type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import type { World } from './world.js'

/** Keys for a server that accepts any. */
export const STORE_KEYS = {
  AWS_ACCESS_KEY_ID: 'x',
  AWS_SECRET_ACCESS_KEY: 'x',
  AWS_EC2_METADATA_DISABLED: 'true',
}

/** Options of a request; `agent` keeps its connections, without it each request has its own. */
export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly agent?: Agent
}

/**
 * An agent with a gateway, and functions that read through it. `words`: of `dsc agent`; `isTold`: it prints notes to
 * standard error.
 */
export async function startGateway(
  world: World,
  options: { readonly words?: readonly string[]; readonly isTold?: boolean } = {},
) {
  const words = [
    'agent',
    ...(options.words ?? ['--gateway', '127.0.0.1:0']),
    ...(options.isTold ? [] : ['--json']),
  ]
  const agent = world.start(words, { environment: { ...STORE_KEYS, TMPDIR: world.directory } })
  const lines = createInterface({ input: agent.process.stdout! })[Symbol.asyncIterator]()
  const line = async () => String((await lines.next()).value)
  const { gateway, url } = options.isTold
    ? { url: (await line()).split(' ').at(-1)!, gateway: (await line()).split('=').at(-1)! }
    : (JSON.parse(await line()) as { gateway: string; url: string })
  const ask = async (path: string, { method = 'GET', headers = {}, agent: kept }: Asked = {}) => {
    const asking = request(`${gateway}${path}`, { method, headers, agent: kept ?? false })
    asking.end()
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) }
  }
  /** Memory of the agent, in bytes. */
  const memory = () => {
    const status = readFileSync(`/proc/${agent.process.pid}/status`, 'utf8')
    return 1024 * Number(/VmRSS:\s+(\d+)/.exec(status)![1])
  }
  /** Sum over a metric's series with matching labels. */
  const metric = async (name: string, labels = '') => {
    const [response] = (await once(get(`${url}/metrics`, { agent: false }), 'response')) as [IncomingMessage]
    const lines = (await buffer(response)).toString().split('\n')
    return lines
      .filter((row) => row.startsWith(`${name}{`) && row.includes(labels))
      .reduce((sum, row) => sum + Number(row.split(' ').at(-1)), 0)
  }
  return {
    agent,
    gateway,
    address: new URL(gateway),
    ask,
    read: (path: string, headers: Readonly<Record<string, string>> = {}) => ask(path, { headers }),
    memory,
    metric,
  }
}
