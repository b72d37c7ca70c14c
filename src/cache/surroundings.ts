import type { Config } from '../config/config.js'
import type { Dataset } from '../model/dataset.js'
import type { RecordStore } from '../records/contract/record-store.js'
import type { Source } from '../sources/source.js'
import type { Cache } from './cache.js'

/** Hears about progress while something is opened. */
export interface Narrator {
  note(sentence: string): void
  /** For facts that users of the result must know, such as left-out files. */
  warn(sentence: string): void
  /**
   * Shows a line that replaces the previous one; `undefined` clears it. Its facts are separated by commas, most
   * important first. `doneRatio`: 0 to 1, if known.
   */
  progress(line: string | undefined, doneRatio?: number): void
}

export interface RecordOptions {
  /** How long to wait for a server that does not answer, in ms. Default 60,000; a file is never waited for. */
  readonly patienceMs?: number
}

/** Passes for copies, of any node, as the service gives them at its door. */
export interface GivenPasses {
  /** In the order of the copies that were asked for; null: there is no such copy any more. */
  readonly passes: readonly (string | null)[]
  /** How long they are good, in ms. */
  readonly lastsMs: number
  /** Certificates that must have signed those of agents; absent: the system's. */
  readonly ca?: string | undefined
}

/** The program around the cache: `dsc` itself, or one that imports it. Everything is opened only on demand. */
export interface Surroundings {
  readonly report: Narrator
  /** Aborts all running operations. */
  readonly signal: AbortSignal
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Wall clock, Unix epoch in milliseconds. */
  readonly nowMs: () => number
  /** Finds and checks the configuration, once. Rejects with CONFIG_INVALID. */
  readonly config: () => Promise<Config>
  /** Opens the configured record, once; the creator of these surroundings closes it. */
  readonly openRecord: (options?: RecordOptions) => Promise<RecordStore>
  /**
   * Opens this node's cache over the record. Rejects with CACHE_ROOT_INVALID when the root is unusable, and with
   * NOT_PERMITTED if it belongs to the node's service.
   */
  readonly openCache: () => Promise<Cache>
  /**
   * Asks the node's service for passes, which agents of other nodes believe. Rejects with NOT_PERMITTED if this user may
   * not read a copy. Undefined: there is no service to ask, so the configuration says what agents believe.
   */
  readonly askPasses: (copyIds: readonly string[]) => Promise<GivenPasses | undefined>
  /** Opens the source of a dataset; the caller closes it. */
  readonly openSource: (dataset: Dataset) => Promise<Source>
}
