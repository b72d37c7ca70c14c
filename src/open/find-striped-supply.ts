import { statSync } from 'node:fs'
import type { CopyAccess } from '../agent/calls/copy-access.js'
import type { SampleFilter } from '../agent/samples/sample-servers.js'
import type { StripeHolder } from '../agent/stripes/open-stripes.js'
import { findLayouts, formatLayout, type StripedLayout } from '../cache/status/find-layouts.js'
import type { Surroundings } from '../cache/surroundings.js'
import { openOrClose } from '../failure/closers.js'
import type { SampleSupply } from '../feed/sources/sample-supply.js'
import type { CopyUse } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { isSameDefinition } from '../model/dataset.js'
import { formatCount } from '../model/format-count.js'
import { agentUrls } from '../model/node.js'
import { holdByThisProcess } from '../platform/processes.js'
import type { RecordStore } from '../records/contract/record-store.js'
import { openSourceReader } from './open-fallback.js'

interface Found {
  readonly record: RecordStore
  readonly dataset: Dataset
  readonly layout: StripedLayout
  readonly copies: readonly CopyUse[]
}

/** A target that a user named, possibly a striped dataset; what the filter leaves open is as the dataset declares. */
export interface StripedTarget extends SampleFilter {
  readonly target: string
  /** Where tables of samples are kept between runs. */
  readonly cacheFolder: string
}

/**
 * The samples of a striped dataset, leased to this process; undefined if `target` is not striped, or if this node has
 * the whole dataset.
 */
export async function findStripedSupply(
  context: Surroundings,
  { target, split, only, format, dialect, cacheFolder }: StripedTarget,
): Promise<{ readonly supply: SampleSupply; release(): Promise<void> } | undefined> {
  const found = await findStripes(context, target)
  if (!found) return undefined
  const { record, dataset, layout } = found
  const { holders, replicas } = await findHolders(found)
  return openOrClose(async (closers) => {
    const release = await leaseAll(context, record, [...holders, ...replicas])
    closers.add(release)
    const [{ openStripes }, { stripeSupply }] = await Promise.all([
      import('../agent/stripes/open-stripes.js'),
      import('../feed/sources/stripe-supply.js'),
    ])
    const access = await openAccess(context, [...holders, ...replicas])
    const stripes = await openStripes({
      dataset: dataset.name,
      version: layout.version,
      holders,
      replicas,
      filter: { split, only, format: format ?? dataset.format, dialect: dialect ?? dataset.dialect },
      access,
      cacheFolder,
      onProgress: (listed) =>
        context.report.progress(`listing samples: ${listed} of ${formatCount(holders.length, 'node')}`),
      signal: context.signal,
    })
    context.report.progress(undefined)
    context.report.note(`${dataset.name}: fed from ${formatLayout(layout)}`)
    const reader = await openSourceReader(context, dataset.name, split)
    closers.add(() => reader.close())
    return { supply: stripeSupply({ ...stripes, reader, onNodeLost: context.report.note }), release }
  })
}

/** The agents that serve each stripe, and those that have the whole version. */
async function findHolders({ record, layout, copies }: Found): Promise<{
  readonly holders: readonly (StripeHolder | undefined)[]
  readonly replicas: readonly StripeHolder[]
}> {
  const nowMs = record.nowMs()
  const agents = agentUrls(await record.listNodes(), nowMs)
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
  return { holders, replicas: whole.map(holderOf).filter((holder) => holder !== undefined) }
}

/** The latest complete layout of the dataset, else the latest one. */
async function findStripes(context: Surroundings, target: string): Promise<Found | undefined> {
  if (/^[./]/.test(target) || statSync(target, { throwIfNoEntry: false })?.isDirectory()) return undefined
  const config = await context.config()
  // Behind a door there may be either kind of record.
  if (config.record.kind !== 'postgres' && config.door === undefined) return undefined
  const { resolveDataset } = await import('../cache/names/resolve-dataset.js')
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

/** The agents' token where this user has it, else passes from the node's service. */
async function openAccess(
  context: Surroundings,
  holders: readonly (StripeHolder | undefined)[],
): Promise<CopyAccess> {
  const copyIds = holders.flatMap((holder) => (holder ? [holder.copyId] : []))
  const [{ openPasses }, { readAgentAccess }] = await Promise.all([
    import('../agent/calls/copy-access.js'),
    import('../agent/calls/agent-access.js'),
  ])
  const config = await context.config()
  if (config.door !== undefined) return openPasses(copyIds, async () => (await context.askPasses(copyIds))!)
  const { ca, token } = await readAgentAccess(config)
  return { ca, tokenFor: async () => token }
}

/** Protects the copies from eviction while this process feeds from them. */
async function leaseAll(
  context: Surroundings,
  record: RecordStore,
  holders: readonly (StripeHolder | undefined)[],
): Promise<() => Promise<void>> {
  const [{ identifyCaller }, { findOwnTask }] = await Promise.all([
    import('../cache/leases/identify-caller.js'),
    import('../cache/leases/find-own-task.js'),
  ])
  const caller = identifyCaller({
    environment: context.environment,
    isOwnProcess: true,
    shares: (await context.config()).cache.policy.shares,
  })
  const { parties } = caller
  const task = await findOwnTask(caller, { record, node: (await context.config()).node })
  const holder = holdByThisProcess()
  const leaseIds: string[] = []
  for (const copyId of new Set(holders.flatMap((each) => (each ? [each.copyId] : [])))) {
    const lease = { task, holder, expiresAtMs: null, parties }
    const leaseId = await record.leaseCopy({ copyId, purpose: 'use', lease }, record.nowMs())
    if (leaseId !== undefined) leaseIds.push(leaseId)
  }
  return async () => {
    for (const leaseId of leaseIds) await record.releaseUses({ leaseId }, record.nowMs())
  }
}
