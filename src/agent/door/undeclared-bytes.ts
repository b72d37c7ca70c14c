import type { Cache } from '../../cache/cache.js'
import { readCopyPages } from '../../cache/status/record-pages.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize } from '../../model/byte-size.js'
import type { Copy } from '../../model/copy.js'
import { type Dataset, isUndeclared } from '../../model/dataset.js'
import type { Asker } from '../../policy/rights.js'

/**
 * Keeps what each user stages without a declaration within `limitBytes`, before anything is evicted for it. Copies
 * count for the user who used them last, and what is on its way counts as it was listed.
 */
export class UndeclaredBytes {
  readonly #limitBytes: number
  /** By user and dataset, bytes on disk that were planned. */
  readonly #underWay = new Map<string, number>()

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /**
   * Takes room for a dataset that needs `neededBytes`; call the result when it is staged or has failed. Rejects with
   * QUOTA_EXCEEDED.
   */
  async take(
    cache: Cache,
    asked: { readonly asker: Asker; readonly dataset: Dataset; readonly neededBytes: number },
  ): Promise<() => void> {
    const { asker, dataset, neededBytes } = asked
    const prefix = `${asker.uid}:`
    const key = prefix + dataset.name
    this.#underWay.set(key, neededBytes)
    const free = () => void this.#underWay.delete(key)
    try {
      let usedBytes = 0
      for (const [other, bytes] of this.#underWay)
        if (other.startsWith(prefix) && other !== key) usedBytes += bytes
      for await (const copies of readCopyPages(cache.record, { node: cache.node }, { nowMs: cache.nowMs() }))
        for (const copy of copies)
          if (isOf(asker, copy) && !this.#underWay.has(prefix + copy.dataset)) usedBytes += copy.chargedBytes
      if (usedBytes + neededBytes <= this.#limitBytes) return free
      throw new DscError(
        'QUOTA_EXCEEDED',
        `no room for ${dataset.name}: it needs ${formatByteSize(neededBytes)}, and undeclared sources of this user have ${formatByteSize(usedBytes)} of ${formatByteSize(this.#limitBytes)}`,
        {
          hint: 'ask root to declare it in the dsc.yaml of the service (datasets:), or to raise agent.undeclaredPerUser',
        },
      )
    } catch (error) {
      free()
      throw error
    }
  }
}

function isOf({ parties }: Asker, { parties: own, source }: Copy): boolean {
  const user = parties.find((party) => party.startsWith('user:'))
  return user !== undefined && own?.includes(user) === true && source !== null && isUndeclared(source)
}
