import { readListing } from '../cache/download/list-elsewhere.js'
import { resolveDataset } from '../cache/names/resolve-dataset.js'
import type { Surroundings } from '../cache/surroundings.js'
import { Manifest } from '../manifest/manifest.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Dataset } from '../model/dataset.js'
import { filesOfSplit } from '../samples/plan/split-files.js'
import { noSplit, prefixOf } from './open-dataset-folder.js'

/** A file in a dataset's source. */
interface SourceFile {
  /** Relative to the folder of the split. */
  readonly path: string
  readonly size: number
  readonly object: ManifestEntry
}

/** The contents of a dataset's source in the folder of the split. */
interface ListedSource {
  readonly dataset: Dataset
  /** The version that a copy of it would have. */
  readonly version: string
  readonly files: readonly SourceFile[]
  /** How long the complete listing took, in ms. */
  readonly listMs: number
}

/** Lists the source of a dataset. */
export async function listSource(
  context: Surroundings,
  target: string,
  split: string | undefined,
): Promise<ListedSource> {
  const dataset = await resolveDataset(context, target)
  return readListing(
    context,
    { dataset, signal: context.signal },
    ({ version }, { copyDirectory, listMs }) => {
      const inFolder = readFiles(copyDirectory, prefixOf(split))
      const files =
        split === undefined || inFolder.length > 0
          ? inFolder
          : filesOfSplit(readFiles(copyDirectory, ''), ({ path }) => path, split)
      if (split !== undefined && files.length === 0) throw noSplit(target, split)
      return { dataset, version, files, listMs }
    },
  )
}

function readFiles(copyDirectory: string, prefix: string): readonly SourceFile[] {
  using manifest = Manifest.openPublished(copyDirectory)
  return Array.from(manifest.entries('all'))
    .filter(({ key }) => key.startsWith(prefix))
    .map((object) => ({ path: object.key.slice(prefix.length), size: object.sizeBytes, object }))
}
