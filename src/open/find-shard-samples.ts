import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readAgentAccess } from '../agent/calls/agent-access.js'
import { fetchKeptSamples } from '../agent/samples/kept-samples.js'
import type { Surroundings } from '../cache/surroundings.js'
import { withClosers } from '../failure/closers.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Copy } from '../model/copy.js'
import { formatCount } from '../model/format-count.js'
import { LOOK_MS, pause } from '../platform/poll.js'
import { keepTable, readKeptTable } from '../samples/kept-tables.js'
import { type ListedSamples, listShardSamples, openListedTable } from '../samples/listed-samples.js'
import type { FolderFile } from '../samples/plan/sample-files.js'
import type { Preparing } from './begin-preparing.js'
import type { CopyArrivals } from './copy-arrivals.js'
import type { FeedRequest } from './feed-request.js'
import { HEADERS_AT_ONCE, listArrivingShards } from './list-arriving-shards.js'
import { openRangeReader } from './open-range-reader.js'
import { findHolders, findInRoot, isAlone, keepInRoot } from './shared-tables.js'

/** Version of the method by which lists are made: lists made by another method are not used. */
const METHOD = 'dsc shard samples 3'
/** How long to wait for other nodes' lists before making one here, in ms; without other nodes, not at all. */
const AGENTS_FIRST_MS = 1000

interface ComingShards {
  readonly preparing: Preparing
  readonly copy: Copy
  readonly request: FeedRequest
  /** Paths are bytes, relative to the split. */
  readonly shards: readonly FolderFile[]
  /** The manifest's entry for each shard. */
  readonly entries: readonly ManifestEntry[]
  readonly arrivals: CopyArrivals
  readonly pathOf: (file: number) => string
}

/**
 * The samples of tar shards that are still downloading. A list is made once per version: takes the one kept by this
 * node or by another node's agent, else makes it from the shards' headers. Undefined if the shards will not come.
 */
export async function findShardSamples(
  context: Surroundings,
  coming: ComingShards,
): Promise<ListedSamples | undefined> {
  const { request, preparing, shards, copy } = coming
  const asked = { version: copy.version!, split: request.split, shards }
  const kept = findKeptSamples(asked, { cacheFolder: request.cacheFolder, root: preparing.cache.root })
  if (kept) return kept
  const stamp = stampOf(asked)
  const stop = new AbortController()
  const signal = AbortSignal.any([context.signal, stop.signal])
  const agents = await findAgents(context, coming, { stamp, signal })
  // An agent with the list, or with all the shards, spares the source the requests for headers.
  const early = await agents.askEarly()
  if (early) return keepEverywhere(coming, stamp, early)
  const made = makeList(context, coming, signal)
  const told = agents.askUntilTold()
  try {
    const listed = await Promise.race([made, told])
    return listed && keepEverywhere(coming, stamp, listed)
  } finally {
    stop.abort()
    await Promise.allSettled([made, told])
    context.report.progress(undefined)
  }
}

/** The subject of a list. */
interface ListedShards {
  readonly version: string
  readonly split: string | undefined
  readonly shards: readonly FolderFile[]
}

/** The list kept by this user, or by a feed or agent of this node. */
export function findKeptSamples(
  listed: ListedShards,
  { cacheFolder, root }: { readonly cacheFolder: string; readonly root: string },
): ListedSamples | undefined {
  const stamp = stampOf(listed)
  const own = readKeptTable(keptPathOf({ cacheFolder }, stamp))
  return openFitting(own ?? findInRoot(root, stamp), listed.shards)
}

/** A digest of everything that the list depends on. */
function stampOf({ version, split, shards }: ListedShards): string {
  const stamp = createHash('sha256').update(`${METHOD}\n${version}\n${split ?? ''}`)
  for (const { path, size } of shards) stamp.update(`\n${path}\0${size}`, 'latin1')
  return stamp.digest('hex')
}

/** Opens a list of exactly these shards; undefined if it is a different list. */
function openFitting(
  bytes: Uint8Array | undefined,
  shards: readonly FolderFile[],
): ListedSamples | undefined {
  if (bytes === undefined) return undefined
  try {
    const table = openListedTable(bytes)
    const isFitting =
      table.isSharded &&
      table.fileCount === shards.length &&
      shards.every(({ path }, file) => table.rawFileName(file) === path)
    return isFitting ? { table, leftOut: [] } : undefined
  } catch {
    return undefined // damaged, or from another version of dsc
  }
}

async function makeList(
  context: Surroundings,
  { preparing, request, shards, entries, arrivals, pathOf }: ComingShards,
  signal: AbortSignal,
): Promise<ListedSamples | undefined> {
  return withClosers(async (closers) => {
    const source = await context.openSource(preparing.dataset)
    closers.add(() => source.close())
    const reader = await openRangeReader(source, { connections: HEADERS_AT_ONCE, signal })
    closers.add(() => reader.close())
    const contents = await listArrivingShards(
      {
        sizes: shards.map(({ size }) => size),
        pathOf,
        isHere: (file) => arrivals.isHere(file),
        waitFor: (file, until) => arrivals.waitFor(file, until),
        readRange: (file, offset, length) => reader.read(entries[file]!, offset, length),
      },
      {
        signal,
        onProgress: (done, total) =>
          context.report.progress(`listing samples: ${done} of ${formatCount(total, 'shard')}`),
      },
    )
    return contents && listShardSamples(shards, contents, { onDamage: request.onDamage ?? 'raise' })
  })
}

/** Agents of other nodes that may have a list. */
interface Agents {
  /** Asks each agent once; keeps asking for a second if one is making the list. */
  askEarly(): Promise<ListedSamples | undefined>
  /** Asks until an agent has it; undefined once the list is no longer needed. */
  askUntilTold(): Promise<ListedSamples | undefined>
}

async function findAgents(
  context: Surroundings,
  { preparing, copy, request, shards }: ComingShards,
  { stamp, signal }: { readonly stamp: string; readonly signal: AbortSignal },
): Promise<Agents> {
  const config = await context.config()
  const { split, only } = request
  const format = request.format ?? preparing.dataset.format
  const access = isAlone(config) ? undefined : await readAgentAccess(config)
  const ask = async (): Promise<ListedSamples | 'listing' | undefined> => {
    let isListing = false
    const holders = access === undefined ? [] : await findHolders(preparing.cache, copy)
    for (const holder of holders) {
      const asked = { stamp, filter: { split, only, format }, access: access!, signal }
      const told = await fetchKeptSamples(holder, asked)
      const listed = told === 'listing' ? undefined : openFitting(told, shards)
      if (listed) return listed
      isListing ||= told === 'listing'
    }
    return isListing ? 'listing' : undefined
  }
  return {
    async askEarly() {
      const untilMs = performance.now() + AGENTS_FIRST_MS
      const tooLate = sleep(AGENTS_FIRST_MS, undefined, { ref: false })
      for (;;) {
        const told = await Promise.race([ask(), tooLate])
        if (told !== 'listing') return told
        if (performance.now() >= untilMs) return undefined
        await pause(LOOK_MS.progress)
      }
    },
    async askUntilTold() {
      while (!signal.aborted) {
        await pause(LOOK_MS.node, signal)
        const told = signal.aborted ? undefined : await ask()
        if (told && told !== 'listing') return told
      }
      return undefined
    },
  }
}

function keptPathOf({ cacheFolder }: Pick<FeedRequest, 'cacheFolder'>, stamp: string): string {
  return join(cacheFolder, `${stamp}.samples`)
}

/**
 * Keeps a list for this user's next feed, and where this node's agent finds it for other nodes; without write
 * permission there, other nodes must make their own. A list with gaps is not kept: the damage may be repaired.
 */
function keepEverywhere(
  { request, preparing }: ComingShards,
  stamp: string,
  listed: ListedSamples,
): ListedSamples {
  if (listed.leftOut.length > 0) return listed
  keepTable(keptPathOf(request, stamp), listed.table)
  keepInRoot(preparing.cache.root, stamp, listed.table)
  return listed
}
