import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { relative } from 'node:path'
import { readAgentAccess } from '../agent/calls/agent-access.js'
import { fetchKeptSamples } from '../agent/samples/kept-samples.js'
import { filesDirectory, SAMPLES_FOLDER } from '../cache/cache-layout.js'
import { findHeld, makeHeld } from '../cache/held-cache.js'
import type { Surroundings } from '../cache/surroundings.js'
import type { Copy } from '../model/copy.js'
import { agentUrls } from '../model/node.js'
import type { SharedTables } from '../samples/index-samples.js'
import { keepTable, readKeptTable } from '../samples/kept-tables.js'
import { type SeenCache, seeCache } from './seen-cache.js'

/**
 * Lists of the samples of a ready copy, made once for its version: kept under the cache root, where this node's other
 * users and the agent find them, and fetched from agents of other nodes that have the version. Undefined for a folder
 * outside the cache: its owner can change it.
 */
export async function openSharedTables(
  context: Surroundings,
  copy: Copy,
  folder: string,
): Promise<SharedTables | undefined> {
  const cache = await seeCache(context)
  if (copy.stripe || copy.version === null || !copy.directory.startsWith(`${cache.root}/`)) return undefined
  const within = relative(filesDirectory(copy.directory), folder)
  const stampOf = (files: string) =>
    createHash('sha256').update(`dsc copy samples 1\n${copy.version}\n${within}\n${files}`).digest('hex')
  return {
    find: async (files) => {
      const stamp = stampOf(files)
      // The user who staged the copy is trusted with its files, and so with their list.
      const owner = lstatSync(copy.directory, { throwIfNoEntry: false })?.uid
      const here = findInRoot(cache.root, stamp, owner)
      if (here) return here
      const told = await askAgents(context, { cache, copy, stamp })
      if (told) keepInRoot(cache.root, stamp, { bytes: told })
      return told
    },
    keep: (files, table) => keepInRoot(cache.root, stampOf(files), table),
  }
}

async function askAgents(
  context: Surroundings,
  { cache, copy, stamp }: { readonly cache: SeenCache; readonly copy: Copy; readonly stamp: string },
): Promise<Uint8Array | undefined> {
  const config = await context.config()
  if (isAlone(config)) return undefined
  const access = await readAgentAccess(config)
  const filter = { split: undefined, only: undefined, format: undefined }
  for (const { url } of await findHolders(cache, copy)) {
    // Without a copy's id, the agent does not start to make a list: the files are here, too.
    const holder = { url, copyId: undefined }
    const told = await fetchKeptSamples(holder, { stamp, filter, access, signal: context.signal })
    if (told !== undefined && told !== 'listing') return told
  }
  return undefined
}

/** Whether the record cannot know of other nodes. */
export function isAlone({ record }: Awaited<ReturnType<Surroundings['config']>>): boolean {
  return record.kind !== 'postgres'
}

/** Agents of other nodes that have, or are downloading, this version of the dataset; none while the record is away. */
export async function findHolders({ record, node, nowMs }: SeenCache, copy: Copy) {
  const [nodes, copies] = await Promise.all([
    record.listNodes(),
    record.listCopies({ dataset: copy.dataset, states: ['ready', 'staging'] }, nowMs()),
  ]).catch(() => [[], []] as const)
  const urls = agentUrls(nodes, nowMs())
  return copies
    .filter((each) => each.node !== node && each.version === copy.version && !each.stripe)
    .flatMap(({ node: name, copyId, state }) => {
      const url = urls.get(name)
      return url === undefined ? [] : [{ url, copyId: state === 'ready' ? copyId : undefined }]
    })
}

/** A list kept by an agent or feed of this node that this user can trust: from root, this user, or `owner`. */
export function findInRoot(root: string, stamp: string, owner?: number): Uint8Array | undefined {
  using folder = findHeld(root, [SAMPLES_FOLDER])
  return folder && readKeptTable(folder.pathOf(`${stamp}.samples`), owner)
}

/** Keeps a list where this node's agent finds it for other nodes. Without write permission, they make their own. */
export function keepInRoot(root: string, stamp: string, table: { readonly bytes: Uint8Array }): void {
  try {
    const folder = makeHeld(root, [SAMPLES_FOLDER])
    keepTable(folder.pathOf(`${stamp}.samples`), table)
    folder.close()
  } catch {
    // The root may belong to another user.
  }
}
