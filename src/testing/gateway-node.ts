import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Gateway } from '../agent/gateway/gateway.js'
import type { GatewayCount } from '../agent/gateway/gateway-counts.js'
import type { GatewayOptions } from '../agent/gateway/gateway-options.js'
import type { Cache } from '../cache/cache.js'
import { prepareDataset } from '../cache/prepare/prepare-dataset.js'
import type { Dataset } from '../model/dataset.js'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { type HeldSource, openHeldSource } from './held-source.js'
import { temporaryDirectory } from './temporary-directory.js'
import { waitFor } from './world.js'

/** The dataset of a node with one. */
export const DATA: Dataset = { name: 'data', source: 's3://bucket/data/', include: [], exclude: [] }

/** A dataset and its source. */
export interface Origin {
  readonly dataset: Dataset
  readonly source: HeldSource
}

/** An origin in memory, by default of `DATA`; keys are relative to the prefix. */
export function originOf(objects: Readonly<Record<string, string | Uint8Array>>, dataset = DATA): Origin {
  return { dataset, source: openHeldSource(objects) }
}

/** A gateway on a free port that answers every user of this machine. */
export function openLocalGateway(
  options: Pick<GatewayOptions, 'cache' | 'declared' | 'keepMs' | 'note'> & Partial<GatewayOptions>,
): Promise<Gateway> {
  return Gateway.open({
    listen: { host: '127.0.0.1', port: 0 },
    ranges: 'proven',
    tokens: undefined,
    users: 'all',
    rules: { ownerUid: 0, admins: [] },
    isShared: false,
    names: [],
    onCounts: () => {},
    ...options,
  })
}

/** An in-process node with datasets from these origins, and its gateways. Without room, bytes are passed through. */
export async function openGatewayNode(
  t: TestContext,
  origins: readonly Origin[],
  { hasRoom = true }: { readonly hasRoom?: boolean } = {},
) {
  const notes: string[] = []
  const counts: GatewayCount[] = []
  const closes: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const { source } of origins) source.release()
    for (const close of closes.toReversed()) await close()
  })
  const directory = await temporaryDirectory(t)
  const root = join(directory, 'cache')
  mkdirSync(root)
  const record = await openSqliteRecord(join(directory, 'record.db'))
  closes.push(async () => record.close())
  const capacityBytes = hasRoom ? 1e12 : 1
  const cache: Cache = {
    ...{ record, root, node: 'n', policy: {}, historyMs: 1e9, transfer: {}, nowMs: () => Date.now() },
    identity: { cacheId: 'c', machine: { id: 'm', host: 'h', isLasting: true } },
    openSource: async ({ source }) => origins.find(({ dataset }) => dataset.source === source)!.source,
    measureDisk: async () => ({ capacityBytes, freeBytes: capacityBytes, inodesTotal: 1e9, inodesFree: 1e9 }),
    listSlurmJobs: async () => new Set(),
  }
  /** Stages a dataset; `root`: the path to use for the cache's root. */
  const prepare = async (dataset: Dataset, calledRoot = root) => {
    const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
    const request = { dataset, isRefresh: false, mayWait: true, lease }
    await prepareDataset({ ...cache, root: calledRoot }, request, { signal: t.signal })
  }
  const open = async (declared: readonly Dataset[]) => {
    const note = (sentence: string) => void notes.push(sentence)
    const onCounts = (found: readonly GatewayCount[]) => void counts.push(...found)
    const gateway = await openLocalGateway({ cache, declared, keepMs: 60_000, note, onCounts })
    closes.push(() => gateway.stop(0))
    const read = async (path: string) => {
      const answer = await fetch(`${gateway.url}/bucket${path}`)
      return { status: answer.status, text: await answer.text(), headers: answer.headers }
    }
    /** Keys and folders of a listing. */
    const list = async (query: string) => {
      const { status, text } = await read(`?list-type=2&${query}`)
      assert.equal(status, 200, text)
      return [...text.matchAll(/<(?:Key|CommonPrefixes><Prefix)>([^<]*)</g)].map(([, key]) => key)
    }
    return { port: gateway.port, read, list }
  }
  /** Names of the datasets that have a copy, or a download. */
  const staged = async () => (await record.listCopies({}, Date.now())).map((copy) => copy.dataset)
  /** Resolves when a failure has been counted so often. */
  const counted = async (code: string, times: number) => {
    const isOfCode = ({ name, labels }: GatewayCount) =>
      name === 'dsc_gateway_failures_total' && labels.code === code
    const count = () => counts.filter(isOfCode).reduce((all, { value }) => all + value, 0)
    await waitFor('the count', () => count() === times)
  }
  return { directory, root, prepare, open, staged, notes, counted }
}
