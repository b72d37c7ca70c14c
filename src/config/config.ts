import type { Dataset } from '../model/dataset.js'
import type { HostPort } from '../model/host-port.js'
import type { CachePolicy } from '../model/policy.js'

/** Where a value came from. */
export type Origin =
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'environment'; readonly variable: string }
  | { readonly kind: 'flag'; readonly flag: string }
  | { readonly kind: 'default' }

/** The record's location. `url` may contain a password: show it only through `redactUrl`. */
export type RecordLocation =
  | { readonly kind: 'sqlite'; readonly url: string; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** All external configuration of dsc, checked. Paths are absolute. */
export interface Config {
  /** The dsc.yaml in effect; undefined without one. */
  readonly filePath: string | undefined
  /** A nearer dsc.yaml that dsc ignores, because others could have written it, and the reason. */
  readonly ignoredFile?: { readonly path: string; readonly reason: string } | undefined
  readonly record: RecordLocation
  /** Name of this node in the record. */
  readonly node: string
  readonly cache: { readonly root: string; readonly policy: CachePolicy }
  /** Datasets of the file, by name in the order of the file; the record may have more. */
  readonly datasets: readonly Dataset[]
  /** Settings of `dsc agent --csi`. */
  readonly csi: {
    /** Name of the driver, which pods name. */
    readonly driver: string
    /** Kubelet's folder. */
    readonly kubelet: string
    /** Dataset → namespaces whose pods may mount it; absent = all. */
    readonly namespaces: Readonly<Record<string, readonly string[]>>
    /** Namespace, or `*` → URLs that its pods may name; a final `*` stands for any rest. */
    readonly sources: Readonly<Record<string, readonly string[]>>
  }
  readonly agent: {
    readonly listen: HostPort
    readonly tokenFile?: string | undefined
    /** URL without final slash at which other nodes reach this agent; absent = derived from `listen`. */
    readonly advertise?: string | undefined
    readonly tls?:
      | { readonly certFile: string; readonly keyFile: string; readonly caFile?: string | undefined }
      | undefined
    /** After this much silence of a node, its copies leave the record, ms; absent = never. */
    readonly forgetNodesAfterMs?: number | undefined
    /** Unix socket at which everybody on this machine may ask this agent, with one for containers; absent = none. */
    readonly door?: string | undefined
    /** `user:…` and `group:…` that have all rights at the door, beside root and the agent's own user. */
    readonly admins: readonly string[]
    /** Most that each user may stage at the door from sources that nobody declared, bytes. */
    readonly undeclaredBytesPerUser: number
    /** Whether the agent serves its page to other machines, too. */
    readonly isPageEverywhere: boolean
    /** A read-only S3 endpoint; absent = none. */
    readonly gateway?:
      | {
          readonly listen: HostPort
          /** How long a copy stays leased after the last read, ms. */
          readonly keepMs: number
          /** When to answer ranges of objects during their download. */
          readonly ranges: 'proven' | 'unproven'
          /** Host names, or URLs of them, besides `localhost` and the machine's. */
          readonly names: readonly string[]
          /** Local users, by uid, whose requests need no signature; absent = the agent's and root. */
          readonly users?: 'all' | readonly number[] | undefined
        }
      | undefined
  }
  readonly cluster: {
    /** Whether a node's word about an object replaces the source's checksum. */
    readonly trustsNodes: boolean
  }
  /**
   * Where the service of this node may answer commands instead: `DSC_DOOR`, or the usual place if no configuration of
   * one's own counts. A command's own configuration has it only while it goes through. Absent = the cache itself.
   */
  readonly door?: { readonly path: string; readonly isNamed: boolean } | undefined
  /** This user, as the service behind the door sees them; absent: no door, or its service takes no credentials. */
  readonly uidAtDoor?: number | undefined
  readonly stage: {
    /** Maximum concurrent requests for one download, 1–1024; absent = the default of `download-files`. */
    readonly concurrency?: number | undefined
    /** A part that receives no bytes for this long is requested again, milliseconds. */
    readonly stallTimeoutMs: number
    /** Maximum concurrent requests on this node, over all its downloads, 1–1,000,000; absent = no limit. */
    readonly maxRequests?: number | undefined
    /** Maximum rate of this node over all its downloads, bytes per second; absent = no limit. */
    readonly bandwidthBytesPerSecond?: number | undefined
  }
  /** `dsc cleanup` forgets events older than this, ms. */
  readonly historyMs: number
  /** Origin of each value by its dotted key in the file (`cache.minFree`, `datasets.flowers.source`). */
  readonly origins: Readonly<Record<string, Origin>>
}

/** Formats an origin for people: `dsc.yaml:7`, `DSC_NODE`, `--config`, `default`. */
export function formatOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'file':
      return `${origin.path}:${origin.line}`
    case 'environment':
      return origin.variable
    case 'flag':
      return origin.flag
    case 'default':
      return 'default'
  }
}
