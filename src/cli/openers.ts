import type { RecordLocation } from '../config/config.js'
import type { Dataset } from '../model/dataset.js'

/** Opens the record, creating it where it is a file. Rejects with a DscError. */
export type OpenRecord = (location: RecordLocation) => Promise<{
  listDatasets(): Promise<readonly Pick<Dataset, 'name'>[]>
  close(): Promise<void>
}>

/** Opens the source of a dataset. It and its listing reject with a DscError. */
export type OpenSource = (dataset: Dataset) => Promise<{
  list(options: { readonly signal: AbortSignal }): AsyncIterable<readonly { readonly key: string }[]>
  close(): Promise<void>
}>

/** What `dsc doctor` and `dsc completion` need from the adapters, which only main.ts names. */
export interface Openers {
  readonly openRecord: OpenRecord
  readonly openSource: OpenSource
}
