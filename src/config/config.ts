import type { Dataset } from '../model/dataset.js'
import type { HostPort } from '../model/host-port.js'
import type { CachePolicy } from '../model/policy.js'

/** Where a value came from. */
export type Origin =
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'environment'; readonly variable: string }
  | { readonly kind: 'flag'; readonly flag: string }
  | { readonly kind: 'default' }

/** Where the record lives. `url` may hold a password: show it only through `redactUrl`. */
export type RecordLocation =
  | { readonly kind: 'sqlite'; readonly url: string; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** Everything that dsc can be told from outside, checked. Paths are absolute. */
export interface Config {
  /** The dsc.yaml that counts; undefined when there is none. */
  readonly filePath: string | undefined
  /** A nearer dsc.yaml that does not count, because others could have written it, and why. */
  readonly ignoredFile?: { readonly path: string; readonly reason: string } | undefined
  readonly record: RecordLocation
  /** Name of this node in the record. */
  readonly node: string
  readonly cache: { readonly root: string; readonly policy: CachePolicy }
  /** Datasets of the file, by name in the order of the file; the record may hold more. */
  readonly datasets: readonly Dataset[]
  readonly agent: {
    readonly listen: HostPort
    readonly tokenFile?: string | undefined
    /** URL without final slash that other nodes reach this agent at; absent = made of `listen`. */
    readonly advertise?: string | undefined
    readonly tls?:
      | { readonly certFile: string; readonly keyFile: string; readonly caFile?: string | undefined }
      | undefined
    /** Copies of a node that was silent for so long leave the record, ms; absent = never. */
    readonly forgetNodesAfterMs?: number | undefined
    /** Whether the page of the agent is for other machines, too. */
    readonly isPageEverywhere: boolean
    /** A read-only S3 endpoint; absent = none. */
    readonly gateway?:
      | {
          readonly listen: HostPort
          /** How long a copy is held after the last read, ms. */
          readonly keepMs: number
          /** When ranges of objects that are arriving are answered. */
          readonly ranges: 'proven' | 'unproven'
          /** Host names, or URLs of them, beside `localhost` and that of the machine. */
          readonly names: readonly string[]
          /** Local users who need not sign, by uid; absent = the agent's and root. */
          readonly users?: 'all' | readonly number[] | undefined
        }
      | undefined
  }
  readonly stage: {
    /** Most requests in flight for one download, 1–1024; absent = the default of `download-files`. */
    readonly concurrency?: number | undefined
    /** A part that brings no bytes for so long is asked for again, milliseconds. */
    readonly stallTimeoutMs: number
    /** Most requests in flight on this node, over all its stagings, 1–1,000,000; absent = no limit. */
    readonly maxRequests?: number | undefined
    /** Most that this node takes over all its stagings, bytes per second; absent = no limit. */
    readonly bandwidthBytesPerSecond?: number | undefined
  }
  /** What happened longer ago is forgotten by `dsc cleanup`, ms. */
  readonly historyMs: number
  /** Origin of each value by its dotted key in the file (`cache.minFree`, `datasets.flowers.source`). */
  readonly origins: Readonly<Record<string, Origin>>
}

/** Writes an origin for people: `dsc.yaml:7`, `DSC_NODE`, `--config`, `default`. */
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
