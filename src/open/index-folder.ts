import type { Surroundings } from '../cache/surroundings.js'
import {
  explainLeftOut,
  type IndexOptions,
  indexSamples,
  type SampleFolder,
} from '../feed/samples/index-samples.js'
import { formatCount } from '../model/format-count.js'
import { samplesCacheFolder } from './samples-folder.js'

/** How samples are listed; the tables go to this user's cache unless it says another folder. */
export type IndexFolderOptions = Omit<IndexOptions, 'onProgress' | 'cacheFolder'> & {
  readonly cacheFolder?: string | undefined
}

/** Lists the samples of a folder; tells how far it is, and what it leaves out. */
export async function indexFolder(
  context: Pick<Surroundings, 'report' | 'environment'>,
  folder: string,
  options: IndexFolderOptions,
): Promise<SampleFolder> {
  const listed = await indexSamples(folder, {
    ...options,
    cacheFolder: options.cacheFolder ?? samplesCacheFolder(context.environment),
    onProgress: (done, total) =>
      context.report.progress(`listing samples: ${done} of ${formatCount(total, 'file')}`),
  })
  context.report.progress(undefined)
  const leftOut = explainLeftOut(listed.leftOut)
  if (leftOut !== undefined) context.report.note(leftOut)
  return listed
}
