import { DscError } from '../../failure/dsc-error.js'

/** `shards`: tar archives whose members are samples · `files`: each file is a sample. */
export const FOLDER_KINDS = ['shards', 'files'] as const
/** What a folder holds. */
export type FolderKind = (typeof FOLDER_KINDS)[number]

/** A file of a folder; `path` is relative to it. */
export interface FolderFile {
  readonly path: string
  readonly size: number
}

/** A file that is not fed, and why. */
export interface LeftOut {
  readonly path: string
  readonly reason: string
}

/** Which files of a folder hold samples, and how. */
export interface SampleFiles<File extends FolderFile> {
  readonly kind: FolderKind
  readonly files: readonly File[]
  readonly leftOut: readonly LeftOut[]
}

/** What the feed does not take apart. */
const OTHER_KINDS = [
  [/\.(tar\.(gz|bz2|xz|zst)|tgz|tbz2|txz|tzst)$/i, 'compressed tar shards', 'unpack them to .tar'],
  [/\.(jsonl|ndjson)(\.\w+)?$/i, 'JSON lines', 'write each line as a sample of a tar shard'],
  [/\.parquet$/i, 'Parquet', 'write each row as a sample of a tar shard'],
  [/\.mds(\.\w+)?$/i, 'MDS shards', 'write each sample into a tar shard'],
  [/\.tfrecords?$|\.tfrecord-\d+/i, 'TFRecord shards', 'write each record as a sample of a tar shard'],
  [/\.(arrow|feather)$/i, 'Arrow', 'write each row as a sample of a tar shard'],
] as const

/** What programs leave in folders beside the data. */
const LITTER = /(^|\/)(\.[^/]*(\/.*)?|Thumbs\.db|desktop\.ini|__MACOSX\/.*)$/i

/**
 * Decides by what most bytes of a folder are. Beside shards every other file is a side file; beside plain files only
 * what programs leave behind. `folder` names it in messages. Throws USAGE for a kind that would be fed as whole files though it holds many samples.
 */
export function planSampleFiles<File extends FolderFile>(
  all: readonly File[],
  { folderKind, folder }: { readonly folderKind?: FolderKind | undefined; readonly folder: string },
): SampleFiles<File> {
  const files = all.filter(({ path }) => !LITTER.test(path))
  const litter = all.filter(({ path }) => LITTER.test(path)).map(({ path }) => leave(path, 'side file'))
  const isShard = ({ path }: FolderFile) => path.endsWith('.tar')
  if (folderKind === 'files') return { kind: 'files', files, leftOut: litter }
  if (folderKind === 'shards' || (files.some(isShard) && isMost(files, isShard))) {
    const beside = files.filter((file) => !isShard(file)).map(({ path }) => leave(path, 'beside tar shards'))
    return { kind: 'shards', files: files.filter(isShard), leftOut: [...litter, ...beside] }
  }
  for (const [pattern, name, hint] of OTHER_KINDS) {
    if (files.length === 0 || !isMost(files, ({ path }) => pattern.test(path))) continue
    throw new DscError('USAGE', `${folder} holds ${name}, which the feed does not read`, {
      hint: `${hint}; or --as files, to feed each file as one sample`,
    })
  }
  return { kind: 'files', files, leftOut: litter }
}

const leave = (path: string, reason: string): LeftOut => ({ path, reason })

/** Whether the files of one kind have most of the bytes; where there are no bytes, whether all are of it. */
function isMost(files: readonly FolderFile[], isOfKind: (file: FolderFile) => boolean): boolean {
  let bytes = 0
  let ofKind = 0
  for (const file of files) {
    bytes += file.size
    if (isOfKind(file)) ofKind += file.size
  }
  return bytes === 0 ? files.every(isOfKind) : ofKind * 2 > bytes
}
