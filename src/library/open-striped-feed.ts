import { statSync } from 'node:fs'
import type { StripeHolder } from '../agent/open-stripes.js'
import type { FeedSettings, OpenedFeeder } from '../feed/open-feeder.js'
import type { CopyUse } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { isSameDefinition } from '../model/dataset.js'
import { formatCount } from '../model/format-count.js'
import { isAgentAlive } from '../model/node.js'
import { identifyProcess } from '../platform/processes.js'
import type { RecordStore } from '../records/record-store.js'
import { findLayouts, formatLayout, type StripedLayout } from '../stage/plan/find-layouts.js'
import { openSourceReader } from './open-fallback.js'
import type { Surroundings } from './surroundings.js'

interface Found {
  readonly record: RecordStore
  readonly dataset: Dataset
  readonly layout: StripedLayout
  readonly copies: readonly CopyUse[]
}

/**
 * Opens a feed over the stripes of a dataset, leased to this process; undefined when `target` is no dataset that lies
 * in stripes, or when this node has the whole of it.
 */
export async function openStripedFeed(
  context: Surroundings,
  target: string,
  filter: { readonly split: string | undefined; readonly extensions: readonly string[] | undefined },
  cacheFolder: string,
  settings: FeedSettings,
): Promise<OpenedFeeder | undefined> {
  const found = await findStripes(context, target)
  if (!found) return undefined
  const { record, dataset, layout, copies } = found
  const config = await context.config()
  const nowMs = record.nowMs()
  const agents = new Map(
    (await record.listNodes())
      .filter((entry) => isAgentAlive(entry, nowMs))
      .map((entry) => [entry.node, entry.agent!.url]),
  )
  const holderOf = (copy: Pick<CopyUse, 'copyId' | 'node'> | undefined): StripeHolder | undefined => {
    const url = copy && agents.get(copy.node)
    return url === undefined ? undefined : { copyId: copy!.copyId, url }
  }
  const holders = layout.stripes.map(({ node, state, copyId }) =>
    holderOf(state === 'ready' && copyId !== null ? { node, copyId } : undefined),
  )
  const whole = copies.filter(
    ({ stripe, state, version }) => !stripe && state === 'ready' && version === layout.version,
  )
  const replicas = whole.map(holderOf).filter((holder) => holder !== undefined)
  const release = await leaseAll(context, record, [...holders, ...replicas])
  try {
    const [{ openStripes }, { openStripedFeeder }, { readAgentAccess }] = await Promise.all([
      import('../agent/open-stripes.js'),
      import('../feed/open-striped-feeder.js'),
      import('../agent/agent-access.js'),
    ])
    const access = await readAgentAccess(config)
    const stripes = await openStripes({
      ...{ dataset: dataset.name, version: layout.version, holders, replicas, filter, access },
      cacheFolder,
      onProgress: (listed) =>
        context.report.progress(`listing samples: ${listed} of ${formatCount(holders.length, 'node')}`),
      signal: context.signal,
    })
    context.report.progress(undefined)
    context.report.note(`${dataset.name}: fed from ${formatLayout(layout)}`)
    const reader = await openSourceReader(context, dataset.name, filter.split)
    const opened = openStripedFeeder({ ...stripes, reader, token: access.token }, settings)
    return { ...opened, close: () => opened.close().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

/** The latest complete layout of the dataset, else the latest one. */
async function findStripes(context: Surroundings, target: string): Promise<Found | undefined> {
  if (/^[./]/.test(target) || statSync(target, { throwIfNoEntry: false })?.isDirectory()) return undefined
  const config = await context.config()
  if (config.record.kind !== 'postgres') return undefined
  const { resolveDataset } = await import('./resolve-dataset.js')
  const dataset = await resolveDataset(context, target)
  const record = await context.openRecord()
  const all = await record.listCopies({ dataset: dataset.name }, record.nowMs())
  const copies = all.filter(({ source }) => source !== null && isSameDefinition(source, dataset))
  const isHere = copies.some(
    ({ node, state, stripe }) => node === config.node && state === 'ready' && !stripe,
  )
  const layouts = findLayouts(copies).filter(({ stripes }) => stripes.some(({ state }) => state === 'ready'))
  const layout = layouts.find(({ isComplete }) => isComplete) ?? layouts[0]
  return isHere || !layout ? undefined : { record, dataset, layout, copies }
}

/** Keeps the copies from being evicted for as long as this process feeds from them. */
async function leaseAll(
  context: Surroundings,
  record: RecordStore,
  holders: readonly (StripeHolder | undefined)[],
): Promise<() => Promise<void>> {
  const [{ identifyCaller }, { chooseHolder }] = await Promise.all([
    import('../stage/identify-caller.js'),
    import('../stage/plan/choose-holder.js'),
  ])
  const caller = identifyCaller({ environment: context.environment, task: undefined, isOwnProcess: true })
  const { task } = chooseHolder(caller, context.nowMs())
  const holder = identifyProcess(process.pid) ?? { kind: 'ttl' as const }
  const leaseIds: string[] = []
  for (const copyId of new Set(holders.flatMap((each) => (each ? [each.copyId] : [])))) {
    const lease = { task, holder, expiresAtMs: null }
    const leaseId = await record.leaseCopy(copyId, 'use', lease, record.nowMs())
    if (leaseId !== undefined) leaseIds.push(leaseId)
  }
  return async () => {
    for (const leaseId of leaseIds) await record.releaseUses({ leaseId }, record.nowMs())
  }
}
