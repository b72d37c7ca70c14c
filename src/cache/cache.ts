import type { Dataset } from '../model/dataset.js'
import type { NodeIdentity } from '../model/node.js'
import type { CachePolicy, DiskUsage } from '../model/policy.js'
import type { RecordStore } from '../records/contract/record-store.js'
import type { Source, StagingPlan, StagingSource } from '../sources/source.js'

/** One node's cache: what every use case of this folder works on. Whoever opened it closes its record. */
export interface Cache {
  readonly record: RecordStore
  readonly node: string
  /** Absolute path of the cache root. */
  readonly root: string
  /** What the node's name stands for. */
  readonly identity: NodeIdentity
  readonly policy: CachePolicy
  readonly nowMs: () => number
  readonly openSource: (dataset: Dataset) => Promise<Source>
  /** Opens the source for a staging by way of other nodes; absent where the record is one machine's. */
  readonly openStagingSource?: (dataset: Dataset, plan: StagingPlan) => Promise<StagingSource>
  /** A folder in which this user has contents of the dataset's objects by their etags; undefined: nowhere. */
  readonly findBlobs?: (dataset: Dataset) => string | undefined
  readonly measureDisk: () => Promise<DiskUsage>
  /** Job ids that Slurm still knows, or undefined when that cannot be found out: then nothing is concluded. */
  readonly listSlurmJobs: () => Promise<ReadonlySet<string> | undefined>
  readonly transfer: TransferSettings
  /** What all stagings of the node may take together; absent = no limit. */
  readonly nodeBudget?: NodeBudget
}

/** How a download behaves; a missing value means the default of `download-files`. */
interface TransferSettings {
  readonly concurrency?: number
  readonly stallTimeoutMs?: number
}

/** Limits of a whole node, which its stagings share equally, whatever process they run in. */
interface NodeBudget {
  /** Requests in flight. */
  readonly maxRequests?: number
  readonly bandwidthBytesPerSecond?: number
}
