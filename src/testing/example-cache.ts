import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Cache } from '../cache/cache.js'
import { identityFile } from '../cache/cache-layout.js'
import { prepareDataset } from '../cache/prepare/prepare-dataset.js'
import type { Dataset } from '../model/dataset.js'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { openFileSource } from '../sources/file/file-source.js'
import { temporaryDirectory } from './temporary-directory.js'

/**
 * A cache with its own SQLite record on a disk that is never full. Every dataset is a folder of this machine,
 * regardless of its source's scheme.
 */
export interface ExampleCache {
  readonly cache: Cache
  /** Folder of the datasets' files from `makeDataset`. */
  readonly sources: string
  /** Writes the files of a dataset, and returns its declaration. */
  makeDataset(name: string, files?: Readonly<Record<string, string>>): Dataset
  /**
   * Makes the dataset ready, with a lease that only a release ends; through another `cache` of the same root if given.
   */
  prepare(
    dataset: Dataset,
    options?: { readonly isRefresh?: boolean; readonly cache?: Cache },
  ): ReturnType<typeof prepareDataset>
}

/** Opens a cache that ends with the test; `changes` replace parts of it. */
export async function openExampleCache(
  context: Pick<TestContext, 'after' | 'signal'>,
  changes: Partial<Cache> = {},
): Promise<ExampleCache> {
  const directory = await temporaryDirectory(context)
  const root = join(directory, 'cache')
  const sources = join(directory, 'sources')
  mkdirSync(root)
  writeFileSync(identityFile(root), '')
  const record = await openSqliteRecord(join(directory, 'record.db'))
  context.after(() => record.close())
  const cache: Cache = {
    record,
    root,
    node: 'node-a',
    identity: { cacheId: 'c', machine: { id: 'm', host: 'h', isLasting: true } },
    policy: {},
    historyMs: 1e9,
    nowMs: Date.now,
    transfer: {},
    openSource: async (dataset) =>
      openFileSource({ ...dataset, source: `${pathToFileURL(join(sources, dataset.name))}/` }),
    measureDisk: async () => ({ capacityBytes: 1e12, freeBytes: 1e12, inodesTotal: 1e9, inodesFree: 1e9 }),
    listSlurmJobs: async () => new Set(),
    ...changes,
  }
  return {
    cache,
    sources,
    makeDataset(name, files = { a: name }) {
      mkdirSync(join(sources, name), { recursive: true })
      for (const [key, text] of Object.entries(files)) writeFileSync(join(sources, name, key), text)
      return { name, source: `s3://bucket/${name}/`, include: [], exclude: [] }
    },
    prepare(dataset, options = {}) {
      const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
      const request = { dataset, isRefresh: options.isRefresh ?? false, mayWait: true, lease }
      return prepareDataset(options.cache ?? cache, request, { signal: context.signal })
    },
  }
}
