import { lstatSync, readdirSync, statSync } from 'node:fs'
import { isDscError } from '../../failure/dsc-error.js'
import { readCopyManifest } from '../../manifest/read-copy-manifest.js'
import type { HeldFolder } from '../../platform/held-folder.js'
import { findProcessesBelow } from '../../platform/open-files.js'
import { findHeld } from '../held-cache.js'
import type { FoundCopyDirectory } from './plan-clean-up.js'

/** An entry that dsc did not put there; it stays as it is. */
interface Refusal {
  readonly path: string
  readonly reason: string
}

/** The contents of a cache root, seen without following any link. */
export class CacheDirectories {
  readonly refused: Refusal[] = []
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  /** Paths of the entries in a folder below the root; empty if there is no such folder. */
  list(...names: readonly string[]): readonly string[] {
    return this.#inside(names, (folder) => folder.list().map(({ name }) => `${folder.name}/${name}`)) ?? []
  }

  /** Names in a folder below the root, with the number of links to each; 1 = the file system does not count. */
  countLinks(name: string): ReadonlyMap<string, number> {
    const path = `${this.#root}/${name}` // nothing is opened, so a link on the way could only cause doubt
    const names = this.#inside([name], (folder) => readdirSync(folder.path)) ?? []
    return new Map(names.map((entry) => [entry, countLinks(`${path}/${entry}`)]))
  }

  /** The content of a copy's directory, and the processes that may still be reading it. */
  describe(path: string, nowMs: number): FoundCopyDirectory | undefined {
    return this.#inside(path.slice(this.#root.length + 1).split('/'), (folder) => {
      const hasFiles = lstatSync(folder.pathOf('files'), { throwIfNoEntry: false }) !== undefined
      const manifest = hasFiles ? readCopyManifest(folder.path) : undefined // without files it is not a copy
      return {
        path,
        manifest,
        ageMs: nowMs - statSync(`${folder.path}/.`).ctimeMs,
        users: findProcessesBelow(path),
      }
    })
  }

  #inside<T>(names: readonly string[], look: (folder: HeldFolder) => T): T | undefined {
    try {
      using folder = findHeld(this.#root, names)
      return folder && look(folder)
    } catch (error) {
      if (!isDscError(error, 'CACHE_ROOT_INVALID')) throw error
      const path = [this.#root, ...names].join('/')
      this.refused.push({ path, reason: error.message })
      return undefined
    }
  }
}

function countLinks(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.nlink ?? 0
}
