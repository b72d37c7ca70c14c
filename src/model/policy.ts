/** What is guaranteed to a user, group or Slurm account of a node. */
export interface Share {
  /** `user:alice`, `group:vision` or `account:nlp`. */
  readonly party: string
  /** Of what copies may take on the node, above 0 to 100; all shares together at most 100. */
  readonly percent: number
}

/** What a node allows its cache to hold. A missing limit does not limit. */
export interface CachePolicy {
  /** Most datasets at once (staging or ready copies), 1 or more. */
  readonly maxDatasets?: number | undefined
  /** Most of the cache's file system that copies may take, in percent of its capacity, above 0 to 100. */
  readonly maxPercent?: number | undefined
  /** Bytes of the file system that staging must leave free, 0 or more. */
  readonly minFreeBytes?: number | undefined
  /** `dsc cleanup` evicts idle copies until they take at most this percent of the capacity. */
  readonly lowWaterPercent?: number | undefined
  /** In the order of the file: a job that belongs to several counts for the first. Absent: nobody has a share. */
  readonly shares?: readonly Share[] | undefined
}

/** The file system that holds the cache, as measured at one moment. */
export interface DiskUsage {
  readonly capacityBytes: number
  /** Bytes that this user may still write. */
  readonly freeBytes: number
  /** Total and free inodes; a total of 0 means the file system does not say (btrfs, some NFS). */
  readonly inodesTotal: number
  readonly inodesFree: number
}
