import type { Cache } from '../../cache/cache.js'
import { readCopyPages } from '../../cache/status/record-pages.js'
import { findOwner } from '../../model/dataset.js'

/** Whether this node has, or had since its agent began, copies that one user alone may see. */
export class PrivateCopies {
  #isAny = false
  readonly #onFirst: () => void

  /** `onFirst` is called when the first one is about to be staged. */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst
  }

  get isAny(): boolean {
    return this.#isAny
  }

  /** Looks for those that there are already. */
  async look({ record, node, nowMs }: Pick<Cache, 'record' | 'node' | 'nowMs'>): Promise<void> {
    for await (const copies of readCopyPages(record, { node }, { nowMs: nowMs() }))
      this.#isAny ||= copies.some(({ dataset }) => findOwner(dataset) !== undefined)
  }

  note(): void {
    if (this.#isAny) return
    this.#isAny = true
    this.#onFirst()
  }
}
