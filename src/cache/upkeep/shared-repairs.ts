import type { Stats } from 'node:fs'

/** The repaired files of one run: copies share files by hard link, so one rotten file damages several of them. */
export class SharedRepairs {
  /** Paths of repaired files, by the inode that was damaged. A copy that is still to be repaired keeps its number taken. */
  readonly #repaired = new Map<string, string>()

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
