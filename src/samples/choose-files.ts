import { DscError } from '../failure/dsc-error.js'
import type { FormatName } from '../model/sample-formats.js'
import { toText } from './byte-path.js'
import { RECOGNITIONS } from './formats/formats.js'
import { type ListedFile, type PackedFiles, packFiles } from './packed-files.js'
import {
  type FolderFile,
  type LeftOut,
  mayBeMarked,
  planSampleFiles,
  type SampleFiles,
} from './plan/sample-files.js'
import { filesOfSplit } from './plan/split-files.js'
import { matchGlob, matchWanted } from './wanted-files.js'

/** Which files to feed: see `IndexOptions`. */
interface FileWish {
  readonly split?: string | undefined
  readonly only?: readonly string[] | undefined
  readonly format?: FormatName | undefined
}

/** The files of a folder that hold samples. */
interface ChosenFiles {
  readonly format: FormatName
  readonly files: PackedFiles
  readonly leftOut: readonly LeftOut[]
}

/** All files, if each of them is surely chosen, and as a sample. */
export function findPlain(
  files: PackedFiles,
  { split, only, format = 'files' }: FileWish,
): ChosenFiles | undefined {
  const isAll = split === undefined && only === undefined && format === 'files' && files.count > 0
  if (!isAll || files.texts.some((text) => mayBeMarked(text, RECOGNITIONS))) return undefined
  return { format, files, leftOut: [] }
}

/** Chooses files as `chooseFiles` does, without a look at each if all are plain files. */
export async function chooseListed(
  folder: string,
  root: string,
  files: PackedFiles,
  options: FileWish,
): Promise<ChosenFiles> {
  const plain = findPlain(files, options)
  if (plain) return plain
  const chosen = chooseFiles(folder, await ofSplit(root, files.list(), options.split), options)
  const isEvery = chosen.files.length === files.count
  return { ...chosen, files: isEvery ? files : packFiles(chosen.files) }
}

/** The files of a split: as the card of the dataset says, or as their names do. Throws COPY_NOT_FOUND without any. */
async function ofSplit(
  folder: string,
  files: readonly ListedFile[],
  split: string | undefined,
): Promise<readonly ListedFile[]> {
  if (split === undefined) return files
  const { readCardSplit } = await import('./card-splits.js')
  const globs = readCardSplit(folder, split)
  const matchers = globs?.map(matchGlob)
  const found = matchers
    ? files.filter(({ path }) => matchers.some((isMatch) => isMatch(toText(path))))
    : filesOfSplit(files, ({ path }) => toText(path), split)
  if (found.length > 0) return found
  throw new DscError(
    'COPY_NOT_FOUND',
    `${folder} has neither a folder nor files named for the split ${split}`,
    {
      hint: `ls ${folder}`,
    },
  )
}

/** Chooses the files of a folder that hold samples. Throws SOURCE_EMPTY if no file does. */
export function chooseFiles<File extends FolderFile>(
  folder: string,
  files: readonly File[],
  { only, format }: Omit<FileWish, 'split'>,
): SampleFiles<File> {
  const isWanted = only && matchWanted(only)
  const wanted = isWanted ? files.filter(({ path }) => isWanted(toText(path))) : files
  const chosen = planSampleFiles(wanted, { formats: RECOGNITIONS, format, folder })
  if (chosen.files.length > 0) return chosen
  if (only)
    throw new DscError('SOURCE_EMPTY', `${folder} holds no files of ${only.join(' or ')}`, {
      hint: 'choose other files with --only, or leave it out for all',
    })
  if (format !== undefined && files.length > 0) {
    const { title } = RECOGNITIONS[format]
    throw new DscError(
      'SOURCE_EMPTY',
      `${folder} holds no ${title}: --as ${format} reads ${FORMAT_FILES[format]}, and its first file is ${toText(files[0]!.path)}`,
      { hint: 'rename the files, or leave --as out' },
    )
  }
  throw new DscError('SOURCE_EMPTY', `${folder} holds no files, so there is nothing to feed`, {
    hint: 'name the folder that has them, or the one in it with --split',
  })
}

/** The files that each format reads, for people. */
const FORMAT_FILES: Readonly<Record<FormatName, string>> = {
  files: 'files of any name',
  shards: '*.tar',
  jsonl: '*.jsonl and *.ndjson',
  csv: '*.csv',
  tsv: '*.tsv',
  parquet: '*.parquet',
  mds: '*.mds, *.mds.zstd, *.mds.gz and *.mds.br',
  litdata: 'chunk-N-M.bin beside index.json',
}
