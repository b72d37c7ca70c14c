import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { askAgentOnce } from '../../http/ask-agent-once.js'
import { readKeptTable } from '../../samples/kept-tables.js'
import type { AgentAccess } from '../calls/agent-client.js'
import type { RouteCall } from '../server/agent-server.js'
import type { SampleFilter } from './sample-servers.js'

/** How long an agent may be silent, in ms: another agent may have the list, or this node can make it. */
const SILENCE_MS = 10_000

/**
 * Answers `GET /v1/samples/<stamp>`, for feeds of other nodes: a list of the samples of tar shards, which a feed of
 * this node made during their download. 404: there is no such list.
 */
export async function answerKeptSamples(
  { tables }: { readonly tables: string | undefined },
  { parameters, response }: RouteCall,
): Promise<void> {
  const table = tables === undefined ? undefined : readKeptTable(join(tables, `${parameters[0]}.samples`))
  if (table === undefined) response.writeHead(404).end()
  else
    response
      .writeHead(200, { 'content-length': table.length, 'content-type': 'application/octet-stream' })
      .end(table)
}

/** An agent that may have a list of samples. */
interface Holder {
  readonly url: string
  /** Its copy, if ready: the agent can then list it. */
  readonly copyId: string | undefined
}

/** Fetches an agent's table of samples. `listing`: it is making one. Undefined: it has none, or does not answer. */
export async function fetchKeptSamples(
  { url, copyId }: Holder,
  options: {
    readonly stamp: string
    readonly filter: SampleFilter
    readonly access: AgentAccess
    readonly signal: AbortSignal
  },
): Promise<Uint8Array | 'listing' | undefined> {
  const { stamp, filter, access, signal } = options
  const paths = [
    `/v1/samples/${stamp}`,
    ...(copyId ? [`/v1/copies/${copyId}/samples?${formatSampleQuery(filter)}`] : []),
  ]
  for (const path of paths) {
    try {
      const question = { ...access, signal, connectTimeoutMs: 5000, silenceMs: SILENCE_MS }
      const answer = await askAgentOnce(`${url}${path}`, question)
      const bytes = await buffer(answer)
      if (answer.statusCode === 200) return bytes
      if (answer.statusCode === 202) return 'listing'
    } catch {
      return undefined // the caller makes the list itself
    }
  }
  return undefined
}

/** The query of `/v1/copies/<id>/samples`. */
export function formatSampleQuery({ split, only, format, dialect }: SampleFilter): string {
  const query = new URLSearchParams()
  if (split !== undefined) query.set('split', split)
  if (only) query.set('only', only.join(','))
  if (format) query.set('as', format)
  if (dialect) query.set('dialect', JSON.stringify(dialect))
  return query.toString()
}
