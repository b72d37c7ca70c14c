import type { Dataset } from '../model/dataset.js'
import type { NodeIdentity } from '../model/node.js'
import type { CachePolicy, DiskUsage } from '../model/policy.js'
import type { RecordStore } from '../records/contract/record-store.js'
import type { OwnAccess } from '../sources/own-access.js'
import type { Source, StagingPlan, StagingSource } from '../sources/source.js'

/** A repository in the cache of hub clients. */
export interface KeptRepository {
  /** `models--org--name` in their cache: `blobs/` has each file under its etag, `snapshots/` by commit and path. */
  readonly directory: string
  /** The folder of the repository that the source names; empty, or with a final slash. */
  readonly within: string
}

/** One node's cache, on which every use case in this folder works. The caller that opened it closes its record. */
export interface Cache {
  readonly record: RecordStore
  readonly node: string
  /** Absolute path of the cache root. */
  readonly root: string
  /** The cache root and machine that the node's name stands for. */
  readonly identity: NodeIdentity
  readonly policy: CachePolicy
  /** Datasets of dsc.yaml, which says who may read them; absent = none. */
  readonly declared?: readonly Dataset[] | undefined
  readonly nowMs: () => number
  /** `own`: what one user shows to the source, in the place of what this process does. */
  readonly openSource: (dataset: Dataset, own?: OwnAccess) => Promise<Source>
  /** Opens a source for staging that also fetches from other nodes; absent if the record serves one machine only. */
  readonly openStagingSource?: ((dataset: Dataset, plan: StagingPlan) => Promise<StagingSource>) | undefined
  /** Where hub clients of this user keep the dataset's repository; undefined if the source is no repository. */
  readonly findKept?: (dataset: Dataset) => KeptRepository | undefined
  readonly measureDisk: () => Promise<DiskUsage>
  /** Job ids that Slurm still knows; undefined if that cannot be found out, and then nothing is concluded. */
  readonly listSlurmJobs: () => Promise<ReadonlySet<string> | undefined>
  readonly transfer: TransferSettings
  /** How long the history keeps events, in ms. */
  readonly historyMs: number
  /** Limits of all stagings of the node together; absent = no limit. */
  readonly nodeBudget?: NodeBudget
}

/** Settings of a download; a missing value means the default of `download-files`. */
interface TransferSettings {
  readonly concurrency?: number | undefined
  readonly stallTimeoutMs?: number | undefined
  readonly hasOtherReaders?: boolean | undefined
}

/** Limits of a whole node, shared equally by its stagings in all processes. */
interface NodeBudget {
  /** Requests in flight. */
  readonly maxRequests?: number | undefined
  readonly bandwidthBytesPerSecond?: number | undefined
}
