/** Other names of a split, as the hub knows them. */
const ALIASES: readonly (readonly string[])[] = [
  ['train', 'training'],
  ['validation', 'valid', 'val', 'dev'],
  ['test', 'testing', 'eval', 'evaluation'],
]
const USUAL = new Set(ALIASES.flat())

/**
 * The files of a split by their names, as the hub lays datasets out: `train.csv`, `data/train-00000-of-00002.parquet`,
 * `train/0.jsonl`, `my_train_file.csv`. Files or folders named for it come before files that have it as a word of their
 * name, and the split's other names count only where no file has the one asked for. A file in a folder named for
 * another of the usual splits belongs to that one, despite its own name, unless there is no other file.
 */
export function filesOfSplit<File>(
  files: readonly File[],
  pathOf: (file: File) => string,
  split: string,
): readonly File[] {
  const asked = split.toLowerCase()
  const datasets = findDatasetNames(files, pathOf)
  const hasAsWord = (stem: string, name: string) =>
    ` ${wordsOf(stem, datasets).join(' ')} `.includes(` ${name.split(WORD_BREAK).join(' ')} `)
  const aliases = ALIASES.find((each) => each.includes(asked)) ?? []
  const outsideOthers = files.filter((file) => !liesInOther(stemOf(pathOf(file)), aliases))
  for (const some of [outsideOthers, files])
    for (const names of [[asked], aliases])
      for (const isOf of [isNamedFor, hasAsWord]) {
        const found = some.filter((file) => names.some((name) => isOf(stemOf(pathOf(file)), name)))
        if (found.length > 0) return found
      }
  return []
}

/** Whether a file's folders are named for usual splits, and none for the one with these names. */
function liesInOther(stem: string, aliases: readonly string[]): boolean {
  if (aliases.length === 0) return false // a split of the dataset's own
  const folders = stem.split('/').slice(0, -1)
  return folders.some((folder) => USUAL.has(folder)) && !folders.some((folder) => aliases.includes(folder))
}

/** The usual splits that the names of these files tell apart, if they tell at least two. */
export function findNamedSplits(paths: readonly string[]): readonly string[] {
  const found = new Set<string>()
  const datasets = findDatasetNames(paths, (path) => path)
  for (const path of paths) {
    const words = wordsOf(stemOf(path), datasets)
    const alias = ALIASES.find((each) => each.some((name) => words.includes(name)))
    if (alias) found.add(alias[0]!)
    if (found.size === ALIASES.length) break
  }
  return found.size > 1 ? [...found].sort() : []
}

/** Whether `paths`, one after the other, can name two of the usual splits: far quicker than finding them. */
export function mayNameSplits(paths: string): boolean {
  const text = paths.toLowerCase()
  return ALIASES.filter((each) => each.some((name) => text.includes(name))).length > 1
}

const WORD_BREAK = /[^a-z0-9]+/
/** Numbers of a file that is one of several. */
const PART_NUMBER = /[-_]\d+(-of-\d+)?$/
/** One of several files, named for more than one word. */
const LONG_NAMED_PART = /(?:^|\/)([a-z0-9]+)_(\w+)-\d+(?:-of-\d+)?$/

function isNamedFor(stem: string, split: string): boolean {
  return [...stem.split('/'), stem.replace(PART_NUMBER, '').split('/').at(-1)].includes(split)
}

/** First words that several splits have in common, as in `coco_train-0` and `coco_val-0`. */
function findDatasetNames<File>(files: readonly File[], pathOf: (file: File) => string): ReadonlySet<string> {
  const rests = new Map<string, string>()
  const names = new Set<string>()
  for (const file of files) {
    const [, first = '', rest] = LONG_NAMED_PART.exec(stemOf(pathOf(file))) ?? []
    if (rest === undefined) continue
    if ((rests.get(first) ?? rest) !== rest) names.add(first)
    rests.set(first, rest)
  }
  return names
}

/**
 * Words of a path without its extension; `train2` is another word than `train`. Of `auxiliary_train-0` only the first
 * counts, as that is another split than train, unless it is the name of a dataset.
 */
function wordsOf(stem: string, datasets: ReadonlySet<string>): readonly string[] {
  const [, first] = LONG_NAMED_PART.exec(stem) ?? []
  return (first === undefined || datasets.has(first) ? stem : stem.replace(/_[^/]*$/, '')).split(WORD_BREAK)
}

/** The path in lower case, without its extension. */
const stemOf = (path: string) => path.toLowerCase().replace(/\.[^/]*$/, '')
