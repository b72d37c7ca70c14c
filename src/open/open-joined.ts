import { basename } from 'node:path'
import type { NodeSurroundings } from '../cache/api/node-api.js'
import { openOrClose } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import type { SampleFolder } from '../samples/index-samples.js'
import { joinSamples, type NamedSamples } from '../samples/join-samples.js'
import { openDatasetFolder } from './open-dataset-folder.js'

/** Samples of several folders or datasets on this machine, leased as one. */
export interface JoinedSamples {
  readonly folder: Pick<SampleFolder, 'root' | 'table'>
  /** Prefix of the names of a target's samples, by target: the last part of the path, or the name of the dataset. */
  readonly names: ReadonlyMap<string, string>
  release(): Promise<void>
}

/** How to read the folders of targets. */
export interface ReadingOptions {
  /** The folder to read in each of them; undefined: all of it. */
  readonly split: string | undefined
  readonly index: (folder: string, copy?: Copy, reading?: undefined, split?: string) => Promise<SampleFolder>
}

/** Leases every target when it is found; if one fails, releases those before it. */
export async function openJoined(
  context: NodeSurroundings,
  targets: readonly string[],
  { split, index }: ReadingOptions,
): Promise<JoinedSamples> {
  return openOrClose(async (closers) => {
    const parts: NamedSamples[] = []
    for (const target of targets) {
      const dataset = await openDatasetFolder(context, target, split)
      closers.add(() => dataset.release())
      const name = basename(target)
      if (parts.some((part) => part.name === name))
        throw new DscError('USAGE', `two of the datasets are named ${name}`, {
          hint: 'folders whose last parts differ',
        })
      parts.push({ name, folder: await index(dataset.folder, dataset.copy, undefined, dataset.split) })
    }
    const names = new Map(parts.map((part, i) => [targets[i]!, part.name]))
    return { folder: joinSamples(parts), names, release: () => closers.close() }
  })
}
