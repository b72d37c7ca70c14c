/**
 * How samples lie in files: `files` each file is one · `shards` members of tar archives · `jsonl` lines of JSON ·
 * `csv`, `tsv` records after a header line · `parquet` rows · `mds` rows of MosaicML Streaming's shards · `litdata`
 * items of LitData's chunks.
 */
export const FORMAT_NAMES = ['files', 'shards', 'jsonl', 'csv', 'tsv', 'parquet', 'mds', 'litdata'] as const
/** How samples lie in the files of a folder. */
export type FormatName = (typeof FORMAT_NAMES)[number]

/** How CSV is written, as far as the user says; the rest is found in each file. */
export interface ToldDialect {
  /** One ASCII character. */
  readonly delimiter?: string | undefined
  /** `none`: a quote is an ordinary character. */
  readonly quote?: '"' | 'none' | undefined
  /** Whether the first record names the fields. */
  readonly header?: boolean | undefined
}
