import type { FormatName } from '../../model/sample-formats.js'
import type { Recognition } from '../plan/sample-files.js'
import { CSV, TSV } from './csv.js'
import type { Format } from './format.js'
import { JSON_LINES } from './json-lines.js'
import { LITDATA } from './litdata.js'
import { MDS } from './mds.js'
import { PARQUET } from './parquet.js'
import { PLAIN_FILES } from './plain-files.js'
import { TAR_SHARDS } from './tar-shards.js'

/** All formats by name. The first whose files have most of a folder's bytes is the folder's; otherwise plain files. */
export const FORMATS: Readonly<Record<FormatName, Format>> = {
  shards: TAR_SHARDS,
  jsonl: JSON_LINES,
  csv: CSV,
  tsv: TSV,
  parquet: PARQUET,
  mds: MDS,
  litdata: LITDATA,
  files: PLAIN_FILES,
}

/** How to recognize the files of each format. */
export const RECOGNITIONS = Object.fromEntries(
  Object.entries(FORMATS).map(([name, { recognition }]) => [name, recognition]),
) as Readonly<Record<FormatName, Recognition>>
