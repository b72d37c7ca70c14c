import { DscError } from '../../failure/dsc-error.js'
import { FORMAT_NAMES, type FormatName } from '../../model/sample-formats.js'

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
  readonly format: FormatName
  readonly files: readonly File[]
  readonly leftOut: readonly LeftOut[]
}

/** How to recognize the files of a format by their paths alone: the files may not be here yet. */
export interface Recognition {
  /** For people: `tar shards`. */
  readonly title: string
  /** Found, in any case of letters, in every path that `holdsSamples` is true for; undefined: nothing is in all of them. */
  readonly mark: RegExp | undefined
  /** Whether a file holds samples of the format; `hasFile` checks for other files of the folder. */
  holdsSamples(path: string, hasFile: (path: string) => boolean): boolean
  /** Whether files of any name count if the format is given and no file has one of its usual names. */
  readonly takesAnyName?: boolean
}

/** Command to repack a dataset: a sample in a compressed file cannot be read without everything before it. */
function unpackWith(command: string): string {
  return `in the folder that the dataset comes from: ${command}`
}

function unpackAll(files: string, command: string): string {
  return unpackWith(`find . -name '${files}' -exec ${command} {} +`)
}

/** Kinds of files that the feed does not take apart, and what helps. */
const OTHER_KINDS = [
  [/\.(tar|jsonl|ndjson|csv|tsv)\.gz$|\.tgz$/i, 'gzip archives', unpackWith('gzip -dr .')],
  [/\.(tar|jsonl|ndjson|csv|tsv)\.bz2$|\.tbz2$/i, 'bzip2 archives', unpackAll('*bz2', 'bzip2 -d')],
  [/\.(tar|jsonl|ndjson|csv|tsv)\.xz$|\.txz$/i, 'xz archives', unpackAll('*xz', 'xz -d')],
  [/\.(tar|jsonl|ndjson|csv|tsv)\.zst$|\.tzst$/i, 'zstd archives', unpackAll('*zst', 'zstd -d --rm')],
  [/\.mds\.\w+$/i, 'compressed MDS shards', 'write them with MDSWriter(compression=None)'],
  [/\.tfrecords?$|\.tfrecord-\d+/i, 'TFRecord shards', 'write each record as a sample of a tar shard'],
  [/\.(arrow|feather)$/i, 'Arrow', 'write each row as a sample of a tar shard'],
] as const

/** The patterns of all of them. */
const ANY_OTHER_KIND = new RegExp(OTHER_KINDS.map(([pattern]) => pattern.source).join('|'), 'i')

/** Files that programs leave in folders beside the data. */
const LITTER = /(^|\/)(\.[^/]*(\/.*)?|Thumbs\.db|desktop\.ini|__MACOSX\/.*)$/i

/** Files about the data, and what Spark, Hive and Delta put beside tables: samples only where nothing else is. */
const CARDS =
  /(^|\/)(_[^/]*(\/.*)?|(readme|license|licence|citation|changelog|notice|datasheet)(\.[^/]*)?|dataset_infos?\.json|state\.json)$/i

/** Formats that hold many samples in files made for that. */
const CONTAINERS: readonly FormatName[] = ['shards', 'parquet', 'mds', 'litdata']
/** Files as a hub names those of its datasets, apart from descriptions of images. */
const HUB_DATA = /^(data\/)?(train|test|val|valid|validation|dev|eval)([-_.][^/]*)?$/i
/** So many times as many other files, with most of the bytes, are the samples, and a table beside them describes them. */
const DESCRIBED_FILES = 10

/** How to choose the files of a folder. */
interface FileChoice {
  /** All formats; earlier ones win. */
  readonly formats: Readonly<Record<FormatName, Recognition>>
  /** The given format; undefined: the format of most bytes. */
  readonly format?: FormatName | undefined
  /** Name of the folder in messages. */
  readonly folder: string
}

/**
 * Decides which files of a folder are samples, by their names before their sizes: files about the data never are where
 * there is data, tables and shards win over pictures of a card, and then the format of most bytes. Beside files of a
 * format, every other file is a side file; beside plain files, only litter of programs is. Throws USAGE for a kind of
 * file that holds many samples but would be fed as whole files.
 */
export function planSampleFiles<File extends FolderFile>(
  all: readonly File[],
  { formats, format: given, folder }: FileChoice,
): SampleFiles<File> {
  const marked = all.filter(matchAny(marksFor(formats)))
  if ((given ?? 'files') === 'files' && marked.length === 0)
    return { format: 'files', files: all, leftOut: [] }
  const hasData =
    marked.length < all.length || marked.some(({ path }) => !LITTER.test(path) && !CARDS.test(path))
  const isCardLeft = hasData && given !== 'files'
  const left = marked.filter(({ path }) => LITTER.test(path) || (isCardLeft && CARDS.test(path)))
  const files = findOthers(all, left)
  const candidates = findOthers(marked, left)
  const litter = left.map(({ path }) => leave(path, 'side file'))
  let paths: ReadonlySet<string> | undefined // made only if a format asks, as there may be millions of files
  const hasFile = (path: string) => {
    paths ??= new Set(files.map((file) => file.path))
    return paths.has(path)
  }
  const findFilesOf = (format: FormatName) =>
    candidates.filter(({ path }) => formats[format].holdsSamples(path, hasFile))
  const chosen = given ?? chooseFormat(files, findFilesOf)
  if (chosen !== 'files') {
    const found = findFilesOf(chosen)
    if (given && found.length === 0 && formats[chosen].takesAnyName)
      return { format: chosen, files, leftOut: litter }
    const reason = `beside ${formats[chosen].title}`
    const beside = findOthers(files, found).map(({ path }) => leave(path, reason))
    return { format: chosen, files: found, leftOut: [...litter, ...beside] }
  }
  if (!given) refuseOthers(files, candidates, folder)
  return { format: 'files', files, leftOut: litter }
}

/**
 * Whether `planSampleFiles` may take one of the files for more than a plain one; false if it surely takes all for those.
 * `text`: their paths, separated by NUL.
 */
export function mayBeMarked(text: string, formats: FileChoice['formats']): boolean {
  // A line for each path: a path of several lines is looked at more closely, not less.
  return anyOf(marksFor(formats), 'im').test(text.replaceAll('\0', '\n'))
}

const marksFor = (formats: FileChoice['formats']) => [LITTER, CARDS, ANY_OTHER_KIND, ...marksOf(formats)]

const marksOf = (formats: FileChoice['formats']) => Object.values(formats).flatMap(({ mark }) => mark ?? [])

/** Whether a path has any of the patterns: one look at each path, as there may be millions. */
function matchAny(patterns: readonly RegExp[]): (file: FolderFile) => boolean {
  const any = anyOf(patterns, 'i')
  return ({ path }) => any.test(path)
}

const anyOf = (patterns: readonly RegExp[], flags: string) =>
  new RegExp(patterns.map(({ source }) => source).join('|'), flags)

/** The files of `all` that are not among `some` of them. */
function findOthers<File extends FolderFile>(all: readonly File[], some: readonly File[]): readonly File[] {
  if (some.length === all.length) return []
  const known = new Set(some)
  return all.filter((file) => !known.has(file))
}

function chooseFormat<File extends FolderFile>(
  files: readonly File[],
  findFilesOf: (format: FormatName) => readonly File[],
): FormatName {
  const candidates: { format: FormatName; found: readonly File[] }[] = []
  for (const format of FORMAT_NAMES) {
    if (format === 'files') continue
    const found = findFilesOf(format)
    if (isMost(files, found)) return format
    if (CONTAINERS.includes(format) || found.some(({ path }) => HUB_DATA.test(path)))
      candidates.push({ format, found })
  }
  const [largest] = candidates
    .filter(({ found }) => found.length > 0)
    .sort((a, b) => sizeOf(b.found) - sizeOf(a.found))
  if (!largest) return 'files'
  const others = files.length - candidates.reduce((sum, { found }) => sum + found.length, 0)
  return others >= DESCRIBED_FILES * largest.found.length ? 'files' : largest.format
}

const sizeOf = (files: readonly FolderFile[]) => files.reduce((sum, { size }) => sum + size, 0)

function refuseOthers(all: readonly FolderFile[], marked: readonly FolderFile[], folder: string): void {
  const files = marked.filter(({ path }) => ANY_OTHER_KIND.test(path))
  if (files.length === 0) return
  for (const [pattern, name, hint] of OTHER_KINDS) {
    if (
      !isMost(
        all,
        files.filter(({ path }) => pattern.test(path)),
      )
    )
      continue
    throw new DscError('USAGE', `${folder} holds ${name}, which the feed does not read`, {
      hint: `${hint}; or --as files, to feed each file as one sample`,
    })
  }
}

const leave = (path: string, reason: string): LeftOut => ({ path, reason })

/** Whether some files have most of the bytes; if there are no bytes, whether they are all of the files. */
function isMost(all: readonly FolderFile[], some: readonly FolderFile[]): boolean {
  if (some.length === 0) return false
  const bytes = sizeOf(all)
  return bytes === 0 ? some.length === all.length : sizeOf(some) * 2 > bytes
}
