/** The result of a listing, before any content is fetched. */
export interface Listing {
  /** Digest of the whole manifest, hexadecimal: the dataset's version. */
  readonly version: string
  /** Objects to fetch, and the sum of their sizes; for a stripe, only its own. */
  readonly files: number
  readonly contentBytes: number
  /** Upper bound of the disk space that the copy takes in blocks, directories and manifest included. */
  readonly neededBytes: number
  readonly neededInodes: number
  /** Empty objects ending in `/`, which consoles create to show folders; they have no file. */
  readonly skippedFolderMarkers: number
  /** Objects excluded by the globs. */
  readonly filteredObjects: number
  /** Everything matches the copy it was compared with, so that no manifest was filled. */
  readonly isKnown?: true
}
