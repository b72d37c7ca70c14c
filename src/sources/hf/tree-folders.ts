/**
 * Which folders of a repository have been listed. A hub lists all below a folder at once; some mirrors only what is
 * directly in it, and what is below its folders has to be asked for.
 */
export class TreeFolders {
  readonly #files = new Set<string>()
  /** Folders that hold something which was listed. */
  readonly #listed = new Set<string>()
  readonly #named: string[] = []

  addFolder(path: string): void {
    this.#named.push(path)
  }

  /** False: it was listed before. */
  addFile(path: string): boolean {
    if (this.#files.has(path)) return false
    this.#files.add(path)
    for (let end = path.lastIndexOf('/'); end !== -1; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end)
      if (this.#listed.has(folder)) break
      this.#listed.add(folder)
      if (end === 0) break
    }
    return true
  }

  /** A folder that was named, and nothing of which was listed so far; it counts as listed from now on. */
  takeUnlisted(): string | undefined {
    for (let folder = this.#named.pop(); folder !== undefined; folder = this.#named.pop()) {
      if (this.#listed.has(folder)) continue
      this.#listed.add(folder)
      return folder
    }
    return undefined
  }
}
