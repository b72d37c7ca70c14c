import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Cache } from '../../cache/cache.js'
import { trashDirectory } from '../../cache/cache-layout.js'
import { listIntoManifest } from '../../cache/download/list-into-manifest.js'
import { openOrClose } from '../../failure/closers.js'
import { isDscError } from '../../failure/dsc-error.js'
import { isOfSqlite } from '../../manifest/manifest-file.js'
import type { Dataset } from '../../model/dataset.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import { createUniqueId } from '../../platform/unique-id.js'
import type { Source } from '../../sources/source.js'

/** How long a dataset that could not be staged is passed through, once listed, before the next attempt, in ms. */
const PASSED_MS = 60_000
/** The same for a dataset that could not be listed, in ms. */
const FAILED_MS = 3000

/** A dataset without a copy on this node: it is read from its source, by a listing made for that. */
export interface Passed {
  readonly kind: 'passed'
  readonly directory: string
  readonly source: Source
  readonly reason: string
  readers: number
  isReplaced: boolean
}

interface PassedOptions {
  readonly cache: Cache
  readonly signal: AbortSignal
  readonly note: (sentence: string) => void
}

/** Datasets for which there is no room: their bytes go straight from the source to the client. */
export class PassedDatasets {
  readonly #options: PassedOptions
  readonly #passed = new Map<string, { untilMs: number; readonly passed: Promise<Passed> }>()

  constructor(options: PassedOptions) {
    this.#options = options
  }

  /** The dataset, if it is passed through now. */
  find({ name }: Dataset): Promise<Passed> | undefined {
    const found = this.#passed.get(name)
    return found && found.untilMs > performance.now() ? found.passed : undefined
  }

  /** Passes a dataset through from now on, and notes why. */
  begin(dataset: Dataset, reason: string): void {
    const before = this.#passed.get(dataset.name)
    void before?.passed.then(replace, () => {})
    this.#options.note(`${dataset.name} is passed through and not kept: ${reason}`)
    const begun = { untilMs: Number.POSITIVE_INFINITY, passed: this.#open(dataset, reason) }
    const endAfter = (ms: number) => {
      begun.untilMs = performance.now() + ms
    }
    begun.passed.then(
      () => endAfter(PASSED_MS),
      () => endAfter(FAILED_MS),
    )
    this.#passed.set(dataset.name, begun)
  }

  /** Keeps a listing while `read` runs, even if a newer one has replaced it. */
  async use<Result>(passed: Passed, read: () => Promise<Result>): Promise<Result> {
    passed.readers += 1
    try {
      return await read()
    } finally {
      passed.readers -= 1
      if (passed.isReplaced) await closeIfUnused(passed)
    }
  }

  async close(): Promise<void> {
    for (const { passed } of this.#passed.values()) await passed.then(replace, () => {})
    this.#passed.clear()
  }

  /** Lists the source into the cache's trash; if that disk is full, into the system's temporary folder. */
  async #open(dataset: Dataset, reason: string): Promise<Passed> {
    const { cache } = this.#options
    const directory = join(trashDirectory(cache.root), `gateway-${createUniqueId()}`)
    try {
      return await this.#list(dataset, directory, reason)
    } catch (error) {
      if (!isDscError(describeDiskFailure(error, cache.root), 'DISK_FULL') && !isOfSqlite(error)) throw error
      return this.#list(dataset, await mkdtemp(join(tmpdir(), 'dsc-gateway-')), reason)
    }
  }

  async #list(dataset: Dataset, directory: string, reason: string): Promise<Passed> {
    const { cache, signal } = this.#options
    return openOrClose(async (closers) => {
      closers.add(() => rm(directory, { recursive: true, force: true }))
      const source = await cache.openSource(dataset)
      closers.add(() => source.close())
      await listIntoManifest({ source, dataset, copyDirectory: directory, unsafeKeys: 'list', signal })
      return { kind: 'passed', directory, source, reason, readers: 0, isReplaced: false }
    })
  }
}

async function replace(passed: Passed): Promise<void> {
  passed.isReplaced = true
  await closeIfUnused(passed)
}

async function closeIfUnused({ readers, source, directory }: Passed): Promise<void> {
  if (readers > 0) return
  await source.close()
  await rm(directory, { recursive: true, force: true })
}
