/** What a listing found, before any content is fetched. */
export interface Listing {
  /** Digest of the whole manifest, hexadecimal: the dataset's version. */
  readonly version: string
  /** Objects to fetch, and the sum of their sizes: of a stripe, its share. */
  readonly files: number
  readonly contentBytes: number
  /** Upper bound of the blocks the copy takes, directories and manifest included. */
  readonly neededBytes: number
  readonly neededInodes: number
  /** Empty objects ending in `/`, which consoles create to show folders; they have no file. */
  readonly skippedFolderMarkers: number
  /** Objects that the globs left out. */
  readonly filteredObjects: number
  /** All is as in the copy that it was held against, so that no manifest was filled. */
  readonly isKnown?: true
}
