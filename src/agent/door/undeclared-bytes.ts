import type { Cache } from '../../cache/cache.js'
import { readCopyPages } from '../../cache/status/record-pages.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize } from '../../model/byte-size.js'
import type { Copy, CopyUse } from '../../model/copy.js'
import { type Dataset, isUndeclared } from '../../model/dataset.js'
import type { Asker } from '../../policy/rights.js'

/**
 * Keeps what each user stages without a declaration within `limitBytes`, before anything is evicted for it. Copies
 * count for the user who used them last, and what is on its way counts as it was listed.
 */
export class UndeclaredBytes {
  readonly #limitBytes: number
  readonly #underWay = new Set<Claim>()

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
    const claim = { uid: asker.uid, dataset: dataset.name, bytes: neededBytes }
    this.#underWay.add(claim)
    const free = () => void this.#underWay.delete(claim)
    try {
      const underWay = this.#sumUnderWay(asker.uid)
      let usedBytes = 0
      for (const [name, bytes] of underWay) if (name !== dataset.name) usedBytes += bytes
      for await (const copies of readCopyPages(cache.record, { node: cache.node }, { nowMs: cache.nowMs() }))
        for (const copy of copies)
          if (isOf(asker, copy) && (isKept(copy) || !underWay.has(copy.dataset)))
            usedBytes += copy.chargedBytes
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

  /** Bytes by dataset: tasks that stage the same one after the other have one copy of it. */
  #sumUnderWay(uid: number): Map<string, number> {
    const found = new Map<string, number>()
    for (const claim of this.#underWay)
      if (claim.uid === uid) found.set(claim.dataset, Math.max(claim.bytes, found.get(claim.dataset) ?? 0))
    return found
  }
}

/** A task that stages a dataset for a user. */
interface Claim {
  readonly uid: number
  readonly dataset: string
  /** Of the listing, as they will be charged on disk. */
  readonly bytes: number
}

/** Whether it stays while the next version of its dataset is staged. */
function isKept({ state, referenceCount, lock }: CopyUse): boolean {
  return state === 'ready' && (referenceCount > 0 || lock !== null)
}

function isOf({ parties }: Asker, { parties: own, source }: Copy): boolean {
  const user = parties.find((party) => party.startsWith('user:'))
  return user !== undefined && own?.includes(user) === true && source !== null && isUndeclared(source)
}
