import { basename } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { type FeedSettings, type OpenedFeeder, openLocalFeeder } from '../../feed/open-feeder.js'
import type { SampleFolder } from '../../feed/samples/index-samples.js'
import { joinSamples, type NamedSamples } from '../../feed/samples/join-samples.js'
import type { CliContext } from '../context.js'
import { type DatasetFolder, openDatasetFolder } from './feed-dataset.js'

/** Opens a feed over several folders or datasets of this machine; `mix` says how often an epoch visits their samples. */
export async function openMixedFeeder(
  context: CliContext,
  mix: Readonly<Record<string, number>>,
  split: string | undefined,
  index: (folder: string) => Promise<SampleFolder>,
  settings: FeedSettings,
): Promise<OpenedFeeder> {
  const datasets: DatasetFolder[] = []
  const release = async () => {
    for (const dataset of datasets) await dataset.release()
  }
  try {
    const parts: NamedSamples[] = []
    for (const [target, times] of Object.entries(mix)) {
      const dataset = await openDatasetFolder(context, target, split)
      datasets.push(dataset)
      const name = basename(target)
      if (parts.some((part) => part.name === name))
        throw new DscError('USAGE', `two parts of the mix are named ${name}`, {
          hint: 'folders whose last parts differ',
        })
      parts.push({ name, folder: await index(dataset.folder), times })
    }
    const { mix: planned, ...folder } = joinSamples(parts)
    const opened = openLocalFeeder(folder, { ...settings, mix: planned })
    return { ...opened, close: () => opened.close().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}
