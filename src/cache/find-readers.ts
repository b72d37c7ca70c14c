import type { Copy } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import type { Cache } from './cache.js'

/** The readers of a dataset, by dsc.yaml or else by its definition. Undefined: everybody. */
export function findReaders(
  { declared = [] }: Pick<Cache, 'declared'>,
  dataset: Pick<Dataset, 'name' | 'readers'>,
): readonly string[] | undefined {
  return (declared.find(({ name }) => name === dataset.name) ?? dataset).readers
}

/** The readers of a copy; undefined: everybody. */
export function findReadersOf(
  cache: Pick<Cache, 'declared'>,
  { dataset: name, source }: Pick<Copy, 'dataset' | 'source'>,
): readonly string[] | undefined {
  return findReaders(cache, { name, readers: source?.readers })
}
