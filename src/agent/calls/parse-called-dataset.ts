import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'

const TEXTS = ['name', 'source', 'endpoint', 'region', 'profile', 'format'] as const
const CLAIMS = ['pathStyle', 'anonymous', 'requesterPays'] as const
const LISTS = ['include', 'exclude', 'columns'] as const

/**
 * Reads the definition of a dataset that a caller of an agent sends: it decides where files go, and is written to the
 * record. Throws a RangeError that names what is wrong.
 */
export function parseCalledDataset(raw: unknown): Dataset {
  if (typeof raw !== 'object' || raw === null) throw new RangeError('expected a dataset')
  const fields = raw as Readonly<Record<string, unknown>>
  const check = (names: readonly string[], expected: string, isRight: (value: unknown) => boolean) => {
    for (const name of names)
      if (fields[name] !== undefined && !isRight(fields[name]))
        throw new RangeError(`dataset.${name}: expected ${expected}, found ${show(fields[name])}`)
  }
  check(TEXTS, 'a text', isText)
  check(CLAIMS, 'true or false', (value) => typeof value === 'boolean')
  check(LISTS, 'a list of texts', (value) => Array.isArray(value) && value.every(isText))
  const dataset = { include: [], exclude: [], ...fields } as unknown as Dataset
  parseDatasetName(String(dataset.name))
  parseSourceUrl(String(dataset.source))
  return dataset
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function show(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 80)
}
