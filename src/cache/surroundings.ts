import type { Config } from '../config/config.js'
import type { Dataset } from '../model/dataset.js'
import type { RecordStore } from '../records/contract/record-store.js'
import type { Source } from '../sources/source.js'
import type { Cache } from './cache.js'

/** Who hears what goes on while something is opened. */
export interface Narrator {
  note(sentence: string): void
  /** What whoever uses the result must know of it, such as files that are left out. */
  warn(sentence: string): void
  /**
   * A line that replaces the one before it; `undefined` clears it. Its facts are separated by commas, the most important
   * first. `doneRatio`, 0 to 1, where it is known.
   */
  progress(line: string | undefined, doneRatio?: number): void
}

export interface RecordOptions {
  /** How long a server that does not answer is waited for, ms. Default 60,000; a file is never waited for. */
  readonly patienceMs?: number
}

/** The program around what is opened by name: `dsc` itself, or one that imports it. Nothing is opened before it is asked for. */
export interface Surroundings {
  readonly report: Narrator
  /** Aborts whatever is going on. */
  readonly signal: AbortSignal
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Wall clock, Unix epoch in milliseconds. */
  readonly nowMs: () => number
  /** Finds and checks the configuration, once. Rejects with CONFIG_INVALID. */
  readonly config: () => Promise<Config>
  /** Opens the configured record, once; whoever made the surroundings closes it. */
  readonly openRecord: (options?: RecordOptions) => Promise<RecordStore>
  /** Opens this node's cache over the record. Rejects with CACHE_ROOT_INVALID when the root is unusable. */
  readonly openCache: () => Promise<Cache>
  /** Opens the source of a dataset; the caller closes it. */
  readonly openSource: (dataset: Dataset) => Promise<Source>
}
