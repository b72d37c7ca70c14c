import type { ListedObject, Source } from '../sources/source.js'

/** All objects of a source. */
export async function listAll(source: Source): Promise<readonly ListedObject[]> {
  const objects: ListedObject[] = []
  for await (const page of source.list({})) objects.push(...page)
  return objects
}

/** The text of an object. */
export async function readObject(source: Source, object: ListedObject): Promise<string> {
  const fetcher = await source.openFetcher({ connections: 2 })
  let text = ''
  try {
    await fetcher.fetch({
      ...object,
      offset: 0,
      length: object.sizeBytes,
      stallTimeoutMs: 5000,
      sink: (chunk) => {
        text += Buffer.from(chunk).toString()
        return 0
      },
    })
  } finally {
    await fetcher.close()
  }
  return text
}
