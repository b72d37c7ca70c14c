import { DscError } from '../failure/dsc-error.js'

/**
 * What the bytes of a sample are: `file` a whole file · `member` the contents of one tar member · `tar` a slice of a
 * tar shard with all members of one key, headers included (WebDataset) · `json` a line of JSON · `csv` a record of
 * delimited text · `row` columns of a Parquet file as MessagePack (`RowEncoder`) · the others: a row as its format stores it.
 */
const SAMPLE_FORMATS = ['file', 'member', 'tar', 'json', 'csv', 'row', 'mds', 'litdata'] as const
/** How a sample lies in its file. */
export type SampleFormat = (typeof SAMPLE_FORMATS)[number]

/** The format of samples, and what else a reader must know to take one apart: names of columns and the like. JSON. */
export interface SampleEncoding {
  readonly format: SampleFormat
  /** Names of the fields, where they are the same for all samples of a file. */
  readonly columns?: readonly string[] | undefined
  /** How each field is stored, in the words of the format (`mds`, `litdata`). */
  readonly types?: readonly string[] | undefined
  /** Bytes of each field; null: they stand before the fields (`mds`). */
  readonly sizes?: readonly (number | null)[] | undefined
  /** What the fields are put together to: a tree as torch.utils._pytree writes it (`litdata`). */
  readonly spec?: string | undefined
  /** What stands between fields (`csv`). */
  readonly delimiter?: string | undefined
}

/** Reads encodings from a table, which may come from another machine. Throws FEED_PROTOCOL. */
export function parseEncodings(bytes: Uint8Array): readonly SampleEncoding[] {
  const encodings = parseJson(bytes)
  if (Array.isArray(encodings) && encodings.every(isEncoding)) return encodings
  throw new DscError('FEED_PROTOCOL', 'a samples manifest names formats that this dsc does not know', {
    hint: 'the same version of dsc on all machines; or make it again: dsc feed plan --refresh',
  })
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
}

function isEncoding(value: unknown): value is SampleEncoding {
  const { format } = Object(value) as { readonly format?: unknown }
  return SAMPLE_FORMATS.some((each) => each === format)
}

/** The formats of samples, for people and for comparison: `file`, or `csv+json` where there are several. */
export function formatsOf(encodings: readonly SampleEncoding[]): string {
  return [...new Set(encodings.map(({ format }) => format))].sort().join('+')
}
