/** The guaranteed part of a node for a user, group or Slurm account. */
export interface Share {
  /** `user:alice`, `group:vision` or `account:nlp`. */
  readonly party: string
  /** Percentage of the space for copies on the node, above 0 to 100; all shares together at most 100. */
  readonly percent: number
}

/** Limits of a node's cache. A missing limit does not apply. */
export interface CachePolicy {
  /** Maximum number of datasets (staging or ready copies), 1 or more. */
  readonly maxDatasets?: number | undefined
  /** Maximum part of the cache's file system for copies, in percent of its capacity, above 0 to 100. */
  readonly maxPercent?: number | undefined
  /** Bytes of the file system that staging must leave free, 0 or more. */
  readonly minFreeBytes?: number | undefined
  /** `dsc cleanup` evicts idle copies until they take at most this percent of the capacity. */
  readonly lowWaterPercent?: number | undefined
  /** In the order of the file: a job that belongs to several counts for the first. Absent: no shares. */
  readonly shares?: readonly Share[] | undefined
}

/** The file system that holds the cache, measured at one moment. */
export interface DiskUsage {
  readonly capacityBytes: number
  /** Bytes that this user can still write. */
  readonly freeBytes: number
  /** Total and free inodes; a total of 0 means the file system does not report them (btrfs, some NFS). */
  readonly inodesTotal: number
  readonly inodesFree: number
}
