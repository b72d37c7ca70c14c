import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent as HttpAgent, request } from 'undici'
import { DscError } from '../failure/dsc-error.js'
import { type MergedTable, mergeTables } from '../feed/samples/merge-tables.js'
import { openSampleTable, type SampleTable } from '../feed/samples/sample-table.js'
import type { StorageTls } from '../feed/storage/open-socket.js'
import type { StorageAddress } from '../feed/storage/storage-client.js'
import type { AgentAccess } from './agent-client.js'
import type { SampleFilter } from './sample-servers.js'

/** A ready copy and the agent that serves it; undefined where the stripe or its agent is gone. */
export interface StripeHolder {
  readonly copyId: string
  readonly url: string
}

/** Everything that a feed needs to read a striped dataset. */
export interface OpenedStripes {
  readonly merged: MergedTable
  readonly nodes: readonly StorageAddress[]
  readonly replicas: readonly StorageAddress[]
  /** Undefined where agents have no certificates; all have one, or none has. */
  readonly tls: StorageTls | undefined
}

interface OpenStripesOptions {
  readonly dataset: string
  readonly version: string
  /** In the order of the stripes. */
  readonly holders: readonly (StripeHolder | undefined)[]
  /** Copies of the whole version. */
  readonly replicas: readonly StripeHolder[]
  readonly filter: SampleFilter
  readonly access: AgentAccess
  /** Where the tables of stripes are kept, for the day when one of them is lost. */
  readonly cacheFolder: string
  readonly onProgress: (listed: number) => void
  readonly signal: AbortSignal
}

const ASK_AGAIN_MS = 500
const TIMEOUT_MS = 30_000

/**
 * Has the agents list the samples of their stripes, merges the lists, and has each serve its own under the one that
 * all share. A stripe that is gone is read elsewhere, if this machine knows its samples from an earlier time.
 */
export async function openStripes(options: OpenStripesOptions): Promise<OpenedStripes> {
  const { holders, access } = options
  const dispatcher = new HttpAgent({ connect: { timeout: 5000, ...(access.ca && { ca: access.ca }) } })
  try {
    let listed = 0
    const tables = await Promise.all(
      holders.map(async (holder, index) => {
        const table = await findTable(options, dispatcher, holder, index)
        listed += 1
        options.onProgress(listed)
        return table
      }),
    )
    const merged = mergeTables(tables)
    const serve = (holder: StripeHolder | undefined) =>
      holder && serveStripe(options, dispatcher, holder, merged.table)
    const addresses = await Promise.all(holders.map(serve))
    const replicas = (await Promise.all(options.replicas.map(serve))).filter((each) => each !== undefined)
    // A node that is asked for samples which it lacks says so at once, and they come from elsewhere.
    const standIn = replicas[0] ?? addresses.find((each) => each !== undefined)
    if (standIn === undefined) {
      throw new DscError('AGENT_UNREACHABLE', `no agent serves a stripe of ${options.dataset}`, {
        hint: 'dsc status shows the nodes; start dsc agent there',
      })
    }
    const isEncrypted = [...holders, ...options.replicas].some((holder) => holder?.url.startsWith('https:'))
    const tls = isEncrypted ? { ca: access.ca } : undefined
    return { merged, replicas, tls, nodes: addresses.map((address) => address ?? standIn) }
  } finally {
    await dispatcher.destroy()
  }
}

/** The samples of one stripe, by its agent, else as they are known from an earlier time. */
async function findTable(
  options: OpenStripesOptions,
  dispatcher: HttpAgent,
  holder: StripeHolder | undefined,
  index: number,
): Promise<SampleTable | undefined> {
  const { dataset, version, holders, filter } = options
  const key = JSON.stringify([
    version,
    index,
    holders.length,
    filter.split ?? null,
    filter.extensions ?? null,
  ])
  const kept = join(options.cacheFolder, `${createHash('sha256').update(key).digest('hex')}.stripe`)
  let problem = 'it is lost'
  if (holder) {
    try {
      const bytes = await fetchTable(options, dispatcher, holder)
      await mkdir(dirname(kept), { recursive: true })
      await writeFile(`${kept}.${process.pid}`, bytes)
      await rename(`${kept}.${process.pid}`, kept)
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

/** Empty: the stripe has no samples. */
async function fetchTable(
  options: OpenStripesOptions,
  dispatcher: HttpAgent,
  { url, copyId }: StripeHolder,
): Promise<Uint8Array> {
  const { filter, signal } = options
  const query = new URLSearchParams({
    ...(filter.split !== undefined && { split: filter.split }),
    ...(filter.extensions && { only: filter.extensions.join(',') }),
  })
  for (;;) {
    const { statusCode, body } = await request(`${url}/v1/copies/${copyId}/samples?${query}`, {
      ...{ dispatcher, signal, headers: authorize(options.access) },
      ...{ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS },
    })
    if (statusCode === 200) return new Uint8Array(await body.arrayBuffer())
    if (statusCode === 204) return new Uint8Array()
    const text = await body.text()
    if (statusCode !== 202)
      throw new Error(`its agent at ${url} answered ${statusCode}: ${text.slice(0, 300)}`)
    await sleep(ASK_AGAIN_MS, undefined, { signal })
  }
}

/** Undefined when the agent does not: its samples come from elsewhere then. */
async function serveStripe(
  options: OpenStripesOptions,
  dispatcher: HttpAgent,
  { url, copyId }: StripeHolder,
  table: SampleTable,
): Promise<StorageAddress | undefined> {
  const { filter, signal } = options
  const query = new URLSearchParams(filter.split === undefined ? {} : { split: filter.split })
  try {
    const { statusCode, body } = await request(`${url}/v1/copies/${copyId}/samples/serve?${query}`, {
      ...{ dispatcher, signal, method: 'POST', headers: authorize(options.access) },
      ...{ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS },
      body: Buffer.from(table.bytes),
    })
    const text = await body.text()
    if (statusCode !== 200) return undefined
    const { port } = JSON.parse(text) as { port: number }
    return { host: new URL(url).hostname.replace(/^\[|\]$/g, ''), port }
  } catch (error) {
    if (signal.aborted) throw error
    return undefined
  }
}

function authorize({ token }: AgentAccess): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}
