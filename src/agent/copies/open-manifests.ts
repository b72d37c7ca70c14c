import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'

/** Maximum number of open manifests. They stay open because opening one costs as much as sending a small object. */
const MAX_OPEN = 64

/** Manifests of ready copies; the most recently used stay open. */
export class OpenManifests {
  readonly #manifests = new Map<string, Manifest>()
  /** Manifests in use: a listing looks into all datasets of its bucket at once. */
  readonly #inUse = new Set<string>()

  /** Calls `look`, which is synchronous, with the manifest of a copy; undefined if the manifest is gone. */
  look<Result>({ copyId, directory }: Copy, look: (manifest: Manifest) => Result): Result | undefined {
    const manifest = this.#manifests.get(copyId) ?? Manifest.findPublished(directory)
    if (manifest === undefined) return undefined
    this.#manifests.delete(copyId)
    this.#manifests.set(copyId, manifest) // move it to the end: the last used is the last closed
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
