import { DscError } from '../failure/dsc-error.js'
import { tryJson } from '../model/try-json.js'

/**
 * Content of a sample: `file` a whole file · `member` the contents of one tar member · `tar` a slice of a tar shard
 * with all members of one key, headers included (WebDataset) · `json` a line of JSON · `csv` a record of delimited text
 * · `row` columns of a Parquet file as MessagePack (`RowEncoder`) · the others: a row as its format stores it.
 */
const SAMPLE_FORMATS = ['file', 'member', 'tar', 'json', 'csv', 'row', 'mds', 'litdata'] as const
/** How a sample lies in its file. */
export type SampleFormat = (typeof SAMPLE_FORMATS)[number]

/** The format of samples, and everything else a reader needs to take one apart, such as names of columns. JSON. */
export interface SampleEncoding {
  readonly format: SampleFormat
  /** Names of the fields, if they are the same for all samples of a file. */
  readonly columns?: readonly string[] | undefined
  /** How each field is stored, in the terms of the format (`mds`, `litdata`). */
  readonly types?: readonly string[] | undefined
  /** Size of each field, in bytes; null: it is stored before the fields (`mds`). */
  readonly sizes?: readonly (number | null)[] | undefined
  /** Structure to build from the fields: a tree as written by torch.utils._pytree (`litdata`). */
  readonly spec?: string | undefined
  /** Separator of fields (`csv`). */
  readonly delimiter?: string | undefined
  /** Absent: quotes enclose fields, and are doubled inside of them (`csv`). */
  readonly quotes?: 'escape' | 'text' | undefined
}

/** Parses the encodings of a table, which may come from another machine. Throws FEED_PROTOCOL. */
export function parseEncodings(bytes: Uint8Array): readonly SampleEncoding[] {
  const encodings = tryJson(Buffer.from(bytes).toString())
  if (Array.isArray(encodings) && encodings.every(isEncoding)) return encodings
  throw new DscError('FEED_PROTOCOL', 'a samples manifest names formats that this dsc does not know', {
    hint: 'the same version of dsc on all machines; or make it again: dsc feed plan --refresh',
  })
}

function isEncoding(value: unknown): value is SampleEncoding {
  const { format } = Object(value) as { readonly format?: unknown }
  return SAMPLE_FORMATS.some((each) => each === format)
}

/** The formats of samples, for people and for comparison: `file`, or `csv+json` if there are several. */
export function formatsOf(encodings: readonly SampleEncoding[]): string {
  return [...new Set(encodings.map(({ format }) => format))].sort().join('+')
}
