import { DscError } from '../failure/dsc-error.js'
import type { FeedSettings, OpenedFeeder } from './open-feeder.js'
import type { SampleLayout } from './plan/sample-placement.js'
import type { SampleFolder } from './samples/index-samples.js'

export interface RemoteOptions {
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly layout: SampleLayout
  readonly fallback: SampleFolder | undefined
  readonly token: string | undefined
}

export async function openRemoteFeeder(
  _options: RemoteOptions,
  _settings: FeedSettings,
): Promise<OpenedFeeder> {
  throw new DscError('USAGE', 'remote feeding is not built yet')
}
