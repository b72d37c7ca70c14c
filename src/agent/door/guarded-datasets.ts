import type { Cache } from '../../cache/cache.js'
import { readCopyPages } from '../../cache/status/record-pages.js'
import { type Dataset, findOwner } from '../../model/dataset.js'
import { UserDirectory } from '../../platform/user-directory.js'

/** How long readers of listed datasets count, in ms: the status asks again every second, for many users. */
const KEPT_MS = 2000

/** Readers by the name of the dataset, for datasets that not everybody may read. */
type ReadersByName = ReadonlyMap<string, readonly string[]>

/**
 * The readers of datasets by dsc.yaml, or else by their definitions and copies in the record, such as those of other
 * nodes. Only the datasets in question are looked up: a record has a million copies.
 */
export class GuardedDatasets {
  readonly #cache: Cache
  readonly #directory = new UserDirectory()
  #untilMs = 0
  /** The answers to lists of this while, each under the names that were new in it. */
  #found = new Map<string, Promise<ReadersByName>>()

  constructor(cache: Cache) {
    this.#cache = cache
  }

  /** Looks up the readers of a dataset now. Undefined: everybody. */
  async readersOf(name: string): Promise<readonly string[] | undefined> {
    const found = await this.#find([name], async () => {
      const definition = await this.#cache.record.findDataset(name)
      return definition ? [definition] : []
    })
    return found.get(name)
  }

  /** The readers of listed datasets; a change may show two seconds late. */
  async readersAmong(names: Iterable<string>): Promise<ReadersByName> {
    if (this.#untilMs < performance.now()) {
      this.#found = new Map()
      this.#untilMs = performance.now() + KEPT_MS
    }
    const found = this.#found
    const wanted = new Set(names)
    const missing = [...wanted].filter((name) => !found.has(name))
    if (missing.length > 0) {
      const finding = this.#find(missing, () => this.#cache.record.listDatasets())
      for (const name of missing) found.set(name, finding)
      finding.catch(() => {
        if (this.#found === found) this.#untilMs = 0
      })
    }
    const answers = await Promise.all([...new Set([...wanted].map((name) => found.get(name)!))])
    return new Map(answers.flatMap((answer) => [...answer]).filter(([name]) => wanted.has(name)))
  }

  async #find(
    names: readonly string[],
    listDefinitions: () => Promise<readonly Dataset[]>,
  ): Promise<ReadersByName> {
    const { record, declared = [], nowMs } = this.#cache
    const declarations = new Map(declared.map((dataset) => [dataset.name, dataset]))
    const found = new Map<string, readonly string[]>()
    const note = (name: string, readers: readonly string[] | undefined) => readers && found.set(name, readers)
    for (const name of names) note(name, declarations.get(name)?.readers)
    const others = new Set<string>()
    for (const name of names) {
      if (declarations.has(name)) continue
      // By its name, for the history outlives the copies.
      const owner = findOwner(name)
      if (owner === undefined) others.add(name)
      else note(name, [typeof owner === 'string' ? owner : `user:${await this.#directory.nameOf(owner)}`])
    }
    if (others.size === 0) return found
    for (const { name, readers } of await listDefinitions()) if (others.has(name)) note(name, readers)
    for await (const copies of readCopyPages(record, { datasets: [...others] }, { nowMs: nowMs() }))
      for (const { dataset, source } of copies) note(dataset, source?.readers)
    return found
  }
}
