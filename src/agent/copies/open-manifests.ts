import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'

/** Manifests that stay open: opening one costs as much as sending a small object. */
const MAX_OPEN = 64

/** Manifests of ready copies; those looked at last stay open. */
export class OpenManifests {
  readonly #manifests = new Map<string, Manifest>()
  /** Those that are being looked at: a listing looks at all datasets of its bucket at once. */
  readonly #inUse = new Set<string>()

  /** Calls `look`, which ends within this turn, with the manifest of a copy; undefined: there is none any more. */
  look<Result>({ copyId, directory }: Copy, look: (manifest: Manifest) => Result): Result | undefined {
    const manifest = this.#manifests.get(copyId) ?? Manifest.findPublished(directory)
    if (manifest === undefined) return undefined
    this.#manifests.delete(copyId)
    this.#manifests.set(copyId, manifest) // the last one used is the last one closed
    const isOutermost = !this.#inUse.has(copyId)
    this.#inUse.add(copyId)
    try {
      this.#closeOldest()
      manifest.holdForTurn()
      return look(manifest)
    } finally {
      if (isOutermost) this.#inUse.delete(copyId)
    }
  }

  close(): void {
    for (const manifest of this.#manifests.values()) manifest.close()
    this.#manifests.clear()
  }

  #closeOldest(): void {
    for (const [copyId, oldest] of this.#manifests) {
      if (this.#manifests.size <= MAX_OPEN) break
      if (this.#inUse.has(copyId)) continue
      this.#manifests.delete(copyId)
      oldest.close()
    }
  }
}
