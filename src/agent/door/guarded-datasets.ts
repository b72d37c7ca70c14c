import type { Cache } from '../../cache/cache.js'
import { findReaders } from '../../cache/find-readers.js'
import { readCopyPages } from '../../cache/status/record-pages.js'

/** How long the list counts, in ms: the status asks again every second, for many users. */
const KEPT_MS = 2000

/** The readers of datasets that not everybody may read, of dsc.yaml and of copies that other nodes have. */
export class GuardedDatasets {
  readonly #cache: Cache
  #untilMs = 0
  #reading: Promise<ReadonlyMap<string, readonly string[]>> | undefined

  constructor(cache: Cache) {
    this.#cache = cache
  }

  /** Undefined: everybody. */
  async readersOf(name: string): Promise<readonly string[] | undefined> {
    if (this.#cache.declared?.some((dataset) => dataset.name === name))
      return findReaders(this.#cache, { name })
    return (await this.read()).get(name)
  }

  /** Readers by the name of the dataset. */
  read(): Promise<ReadonlyMap<string, readonly string[]>> {
    if (this.#reading && this.#untilMs > performance.now()) return this.#reading
    this.#untilMs = performance.now() + KEPT_MS
    const reading = this.#list()
    reading.catch(() => {
      if (this.#reading === reading) this.#reading = undefined
    })
    this.#reading = reading
    return reading
  }

  async #list(): Promise<ReadonlyMap<string, readonly string[]>> {
    const { record, declared = [], nowMs } = this.#cache
    const found = new Map<string, readonly string[]>()
    for (const { name, readers } of await record.listDatasets()) if (readers) found.set(name, readers)
    for await (const copies of readCopyPages(record, {}, { nowMs: nowMs() }))
      for (const { dataset, source } of copies) if (source?.readers) found.set(dataset, source.readers)
    for (const { name, readers } of declared)
      if (readers) found.set(name, readers)
      else found.delete(name)
    return found
  }
}
