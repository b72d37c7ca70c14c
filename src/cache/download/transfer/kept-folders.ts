import { closeSync, constants, openSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { O_PATH } from '../../../platform/held-folder.js'
import { onHeldPath } from '../../../platform/held-path.js'

/** Maximum number of folders kept open. Listings are in key order, so few are in use at a time. */
const MAX_KEPT = 32
/** A path through a descriptor: it is resolved folder by folder, following no link. */
const IS_HELD = /^\/proc\/self\/fd\/\d+\//

/**
 * Folders in which a transfer recently created files, kept open: reaching one takes twice as long as creating a file in
 * it.
 */
export class KeptFolders {
  readonly #descriptors = new Map<string, number>()

  /** Calls `act` with a path to the same entry, after creating missing folders on the way. */
  on<T>(path: string, act: (path: string) => T): T {
    if (!IS_HELD.test(path)) return onHeldPath(path, act, { makesFolders: true })
    const folder = dirname(path)
    const name = basename(path)
    const known = name === '..' ? undefined : this.#descriptors.get(folder)
    if (known !== undefined) {
      try {
        return act(`/proc/self/fd/${known}/${name}`)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        this.#forget(folder) // it was removed, and another may have its name
      }
    }
    return act(`/proc/self/fd/${this.#open(folder, path)}/${name}`)
  }

  close(): void {
    for (const folder of [...this.#descriptors.keys()]) this.#forget(folder)
  }

  #open(folder: string, path: string): number {
    const open = (direct: string) => openSync(dirname(direct), O_PATH | constants.O_DIRECTORY)
    const descriptor = onHeldPath(path, open, { makesFolders: true })
    if (this.#descriptors.size >= MAX_KEPT) this.#forget(this.#descriptors.keys().next().value!)
    this.#descriptors.set(folder, descriptor)
    return descriptor
  }

  #forget(folder: string): void {
    closeSync(this.#descriptors.get(folder)!)
    this.#descriptors.delete(folder)
  }
}
