/** Other names of a split, as the hub knows them. */
const ALIASES: readonly (readonly string[])[] = [
  ['train', 'training'],
  ['validation', 'valid', 'val', 'dev'],
  ['test', 'testing', 'eval', 'evaluation'],
]

/**
 * The files of a split by their names, as the hub lays datasets out: `train.csv`, `data/train-00000-of-00002.parquet`,
 * `train/0.jsonl`, `my_train_file.csv`. Files or folders named for it come before files that have it as a word of their
 * name, and the split's other names count only where no file has the one asked for.
 */
export function filesOfSplit<File>(
  files: readonly File[],
  pathOf: (file: File) => string,
  split: string,
): readonly File[] {
  const asked = split.toLowerCase()
  for (const names of [[asked], ALIASES.find((each) => each.includes(asked)) ?? []])
    for (const isOf of [isNamedFor, hasAsWord]) {
      const found = files.filter((file) => names.some((name) => isOf(pathOf(file).toLowerCase(), name)))
      if (found.length > 0) return found
    }
  return []
}

/** Numbers of a file that is one of several. */
const PART_NUMBER = /[-_]\d+(-of-\d+)?$/

function isNamedFor(path: string, split: string): boolean {
  const stem = stemOf(path)
  return [...stem.split('/'), stem.replace(PART_NUMBER, '').split('/').at(-1)].includes(split)
}

/** Of `auxiliary_train-0`, one of several files of a split, only the first word counts: it is another split. */
function hasAsWord(path: string, split: string): boolean {
  const stem = stemOf(path)
  const words = (/(^|\/)[a-z0-9]+_\w+-\d+(-of-\d+)?$/.test(stem) ? stem.replace(/_[^/]*$/, '') : stem).split(
    WORD_BREAK,
  )
  return ` ${words.join(' ')} `.includes(` ${split.split(WORD_BREAK).join(' ')} `)
}

/** The usual splits that the names of these files tell apart, if they tell at least two. */
export function findNamedSplits(paths: Iterable<string>): readonly string[] {
  const found = new Set<string>()
  for (const path of paths) {
    const words = wordsOf(path)
    const alias = ALIASES.find((each) => each.some((name) => words.includes(name)))
    if (alias) found.add(alias[0]!)
    if (found.size === ALIASES.length) break
  }
  return found.size > 1 ? [...found].sort() : []
}

const WORD_BREAK = /[^a-z0-9]+/

/** Words of a path without its extension; `train2` is another word than `train`. */
function wordsOf(path: string): readonly string[] {
  return stemOf(path).toLowerCase().split(WORD_BREAK)
}

const stemOf = (path: string) => path.replace(/\.[^/]*$/, '')
