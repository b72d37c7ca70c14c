import type { Stats } from 'node:fs'

/**
 * The damaged and the repaired files of one run: copies share files by hard link, so one rotten file damages several of
 * them.
 */
export class SharedRepairs {
  /** Links to each damaged file that the run has not seen, by its inode. */
  readonly #linksElsewhere = new Map<string, number>()
  /** Paths of repaired files, by the inode that was damaged. A copy that is still to be repaired keeps its number taken. */
  readonly #repaired = new Map<string, string>()

  /** Number of damaged files that other copies have too, which the run did not read. */
  get sharedElsewhere(): number {
    return [...this.#linksElsewhere.values()].filter((links) => links > 0).length
  }

  /** Notes one name of a damaged file, before its repair. */
  see(damaged: Stats | undefined): void {
    if (!damaged?.isFile()) return
    const key = keyOf(damaged)
    this.#linksElsewhere.set(key, (this.#linksElsewhere.get(key) ?? damaged.nlink) - 1)
  }

  /** The file that took the place of this damaged one in another copy. */
  find(damaged: Stats | undefined): string | undefined {
    return damaged && this.#repaired.get(keyOf(damaged))
  }

  /** Notes that the file at `path` took the place of a damaged one. */
  note(damaged: Stats | undefined, path: string): void {
    if (damaged?.isFile() && damaged.nlink > 1) this.#repaired.set(keyOf(damaged), path)
  }
}

function keyOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`
}
