/** Other names of a split, as the hub knows them. */
const ALIASES: readonly (readonly string[])[] = [
  ['train', 'training'],
  ['validation', 'valid', 'val', 'dev'],
  ['test', 'testing', 'eval', 'evaluation'],
]

/**
 * Whether a file is of a split by its name, as the hub lays datasets out: `train.csv`, `data/train-00000-of-00002.parquet`,
 * `train/0.jsonl`, `my_train_file.csv`. The split is a whole word of the file's name or of a folder above it.
 */
export function isOfSplit(path: string, split: string): boolean {
  const names = ALIASES.find((each) => each.includes(split)) ?? [split]
  return wordsOf(path).some((word) => names.includes(word))
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

/** Words of a path without its extension; `train2` is another word than `train`. */
function wordsOf(path: string): readonly string[] {
  const stem = path.replace(/\.[^/]*$/, '')
  return stem.toLowerCase().split(/[^a-z0-9]+/)
}
