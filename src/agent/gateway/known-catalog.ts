import type { Cache } from '../../cache/cache.js'
import { type Dataset, findOwner, isUndeclared } from '../../model/dataset.js'
import { isPublic } from '../../policy/rights.js'
import { answerInTime } from './answer-in-time.js'
import { type Catalog, makeCatalog } from './find-dataset.js'

/** How long the list of datasets stays fresh, in ms. */
const DATASETS_MS = 2000

/** The datasets that clients can ask for, from dsc.yaml and the record; reread every two seconds. */
export class KnownCatalog {
  readonly #cache: Cache
  readonly #declared: readonly Dataset[]
  #untilMs = 0
  #reading: Promise<Catalog> | undefined
  #read: Catalog | undefined

  constructor(options: { readonly cache: Cache; readonly declared: readonly Dataset[] }) {
    this.#cache = options.cache
    this.#declared = options.declared
  }

  /** The fresh catalog; undefined: it must be read. */
  get known(): Catalog | undefined {
    return this.#untilMs > performance.now() ? this.#read : undefined
  }

  /** The fresh catalog, else the record's; if the record is away, its last known one. */
  read(): Promise<Catalog> {
    if (this.#reading && this.#untilMs > performance.now()) return this.#reading
    const before = this.#reading
    this.#read = undefined
    this.#untilMs = performance.now() + DATASETS_MS
    const reading = this.#ask(before).then((catalog) => {
      if (this.#reading === reading) this.#read = catalog
      return catalog
    })
    this.#reading = reading
    return reading
  }

  async #ask(before: Promise<Catalog> | undefined): Promise<Catalog> {
    const declared = this.#declared
    const asked = this.#cache.record.listDatasets().then((known) => {
      const names = new Set(declared.map(({ name }) => name))
      const added = known
        .filter(({ name }) => !names.has(name) && findOwner(name) === undefined)
        .map(withUsersRights)
      return makeCatalog([...declared, ...added])
    })
    asked.catch(() => {}) // may fail while the earlier one is awaited
    const earlier = await before
    return answerInTime(asked, { answer: earlier ?? makeCatalog(declared) })
  }
}

/**
 * Any user may prepare a public URL at the door, and the record remembers it. The gateway stages it as the door does:
 * without the node's credentials, which may open a repository that this user may not read.
 */
function withUsersRights(dataset: Dataset): Dataset {
  return isUndeclared(dataset) && isPublic(dataset.source) ? { ...dataset, anonymous: true } : dataset
}
