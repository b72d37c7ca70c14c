import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { dirname, join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { DscError } from '../../failure/dsc-error.js'
import type { StorageNodePlace } from '../../feed/sources/storage-node.js'
import type { StripedOptions } from '../../feed/sources/stripe-supply.js'
import type { StorageAddress } from '../../feed/storage/storage-client.js'
import { askAgentOnce } from '../../http/ask-agent-once.js'
import type { Question } from '../../http/ask-once.js'
import { LOOK_MS } from '../../platform/poll.js'
import { mergeTables } from '../../samples/merge-tables.js'
import { openSampleTable, type SampleTable } from '../../samples/sample-table.js'
import type { CopyAccess } from '../calls/copy-access.js'
import { formatSampleQuery } from '../samples/kept-samples.js'
import type { SampleFilter } from '../samples/sample-servers.js'

/** A ready copy and the agent that serves it; undefined if the stripe or its agent is gone. */
export interface StripeHolder {
  readonly copyId: string
  readonly url: string
}

/** Everything that a feed needs to read a striped dataset. Either all agents have certificates, or none. */
export type OpenedStripes = Pick<StripedOptions, 'merged' | 'nodes' | 'replicas' | 'tls'>

interface OpenStripesOptions {
  readonly dataset: string
  readonly version: string
  /** In the order of the stripes. */
  readonly holders: readonly (StripeHolder | undefined)[]
  /** Copies of the whole version. */
  readonly replicas: readonly StripeHolder[]
  readonly filter: SampleFilter
  readonly access: CopyAccess
  /** Where the stripes' tables are kept, for the day when a stripe is lost. */
  readonly cacheFolder: string
  readonly onProgress: (listed: number) => void
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 30_000

/**
 * Asks the agents to list the samples of their stripes, merges the lists, and has each agent serve its own samples
 * under the merged list. A lost stripe is read elsewhere, if this machine knows its samples from an earlier time. A
 * restarted agent serves nothing until asked again, which the nodes' places do.
 */
export async function openStripes(options: OpenStripesOptions): Promise<OpenedStripes> {
  const { holders, access } = options
  let listed = 0
  const tables = await Promise.all(
    holders.map(async (holder, index) => {
      const table = await findTable(options, holder, index)
      listed += 1
      options.onProgress(listed)
      return table
    }),
  )
  const merged = mergeTables(tables)
  const place = async (holder: StripeHolder | undefined): Promise<StorageNodePlace> => {
    if (!holder) return { address: undefined }
    const find = () => serveStripe(options, holder, merged.table)
    return { address: await find(), find, findToken: () => access.tokenFor(holder.copyId) }
  }
  const nodes = await Promise.all(holders.map(place))
  const replicas = await Promise.all(options.replicas.map(place))
  if ([...nodes, ...replicas].every(({ address }) => address === undefined)) {
    throw new DscError('AGENT_UNREACHABLE', `no agent serves a stripe of ${options.dataset}`, {
      hint: 'dsc status shows the nodes; start dsc agent there',
    })
  }
  const isEncrypted = [...holders, ...options.replicas].some((holder) => holder?.url.startsWith('https:'))
  const tls = isEncrypted ? { ca: access.ca } : undefined
  return { merged, replicas, tls, nodes }
}

/** The samples of one stripe: from its agent, else as known from an earlier time. */
async function findTable(
  options: OpenStripesOptions,
  holder: StripeHolder | undefined,
  index: number,
): Promise<SampleTable | undefined> {
  const { dataset, version, holders, filter } = options
  const key = JSON.stringify([
    version,
    index,
    holders.length,
    filter.split ?? null,
    filter.only ?? null,
    filter.format ?? null,
    ...(filter.dialect ? [filter.dialect] : []), // else the key of a list that an older dsc kept
  ])
  const kept = join(options.cacheFolder, `${createHash('sha256').update(key).digest('hex')}.stripe`)
  let problem = 'it is lost'
  if (holder) {
    try {
      const bytes = await fetchTable(options, holder)
      await keep(kept, bytes).catch(() => {}) // a user without a home folder reads them all the same
      return bytes.length === 0 ? undefined : openSampleTable(bytes)
    } catch (error) {
      if (options.signal.aborted) throw error
      problem = error instanceof Error ? error.message : String(error)
    }
  }
  const bytes = await readFile(kept).catch(() => undefined)
  if (bytes === undefined) {
    throw new DscError(
      'COPY_NOT_FOUND',
      `stripe ${index + 1}/${holders.length} of ${dataset}: ${problem}; which samples it has is not known on this machine`,
      { hint: `dsc repair ${dataset}` },
    )
  }
  return bytes.length === 0 ? undefined : openSampleTable(bytes)
}

async function keep(path: string, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.${process.pid}`, bytes)
  await rename(`${path}.${process.pid}`, path)
}

/** Empty: the stripe has no samples. */
async function fetchTable(options: OpenStripesOptions, holder: StripeHolder): Promise<Uint8Array> {
  const { filter, signal } = options
  const { url } = holder
  for (;;) {
    const answer = await ask(options, holder, { path: `samples?${formatSampleQuery(filter)}` })
    const { statusCode } = answer
    const bytes = await buffer(answer)
    if (statusCode === 200 || statusCode === 204) return bytes
    if (statusCode !== 202)
      throw new Error(`its agent at ${url} answered ${statusCode}: ${bytes.toString('utf8', 0, 300)}`)
    await sleep(LOOK_MS.node, undefined, { signal })
  }
}

/** Undefined if the agent does not serve them: its samples then come from elsewhere. */
async function serveStripe(
  options: OpenStripesOptions,
  holder: StripeHolder,
  table: SampleTable,
): Promise<StorageAddress | undefined> {
  const { filter, signal } = options
  const query = new URLSearchParams(filter.split === undefined ? {} : { split: filter.split })
  try {
    const what = { path: `samples/serve?${query}`, method: 'POST', body: [table.bytes] } as const
    const answer = await ask(options, holder, what)
    const told = await text(answer)
    if (answer.statusCode !== 200) return undefined
    const { port } = JSON.parse(told) as { port: number }
    return { host: new URL(holder.url).hostname.replace(/^\[|\]$/g, ''), port }
  } catch (error) {
    if (signal.aborted) throw error
    return undefined
  }
}

async function ask(
  { access, signal }: OpenStripesOptions,
  { url, copyId }: StripeHolder,
  { path, ...what }: Pick<Question, 'method' | 'body'> & { readonly path: string },
): Promise<IncomingMessage> {
  const shown = { ca: access.ca, token: await access.tokenFor(copyId) }
  const limits = { signal, connectTimeoutMs: 5000, silenceMs: TIMEOUT_MS }
  return askAgentOnce(`${url}/v1/copies/${copyId}/${path}`, { ...shown, ...what, ...limits })
}
