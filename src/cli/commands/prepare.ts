import { Command } from 'commander'
import type { Leased } from '../../cache/api/node-api.js'
import { chooseHolder } from '../../cache/leases/choose-holder.js'
import { identifyCaller } from '../../cache/leases/identify-caller.js'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { parseDuration, requireTimer } from '../../model/duration.js'
import { SOURCE_EXAMPLES } from '../../model/source-url.js'
import { bandwidthLimitOption, readBandwidthLimit } from '../arguments/bandwidth-limit-option.js'
import { taskOption, ttlOption } from '../arguments/lease-options.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseEndpoint } from '../arguments/parse-argument.js'
import { parseNodes } from '../arguments/parse-nodes.js'
import type { CliContext } from '../context.js'
import { notePrepared, noteStillLeased, reportPaths } from '../output/report-prepared.js'
import { requireRepository } from '../prepare/hub-cache.js'
import { runAsProlog, runWithinDeadline } from '../prepare/within-deadline.js'

const declare = () =>
  new Command('prepare')
    .argument('<datasets...>', `names of datasets, or sources: ./folder, ${SOURCE_EXAMPLES}`)
    .addOption(taskOption())
    .addOption(ttlOption())
    .option('--plan', 'show what would be downloaded and evicted')
    .option('--refresh', 'check the source for a new version')
    .option('--prefetch', 'for a queued job: use only space that no share is entitled to')
    .option('--include <glob...>', 'of a source: only files that match')
    .option('--exclude <glob...>', 'of a source: no files that match; wins over --include')
    .option('--anonymous', 'of a source: send no credentials')
    .option('--endpoint <url>', 'of a source: S3 server or hub', argument(parseEndpoint))
    .option('--profile <name>', 'of a source: AWS profile')
    .option('--hf', 'of an hf:// source: print a folder for HF_HUB_CACHE')
    .option('--no-wait', 'fail if another process is staging the dataset')
    .option('--nodes <nodes>', 'stage on these nodes: a,b,c, or on all with an agent', parseNodes)
    .option('--stripe <nodes>', 'spread the dataset over these nodes: a,b,c', parseNodes)
    .option('--all', 'as --nodes all')
    .option('--remote', 'use a copy on another node over HTTP, and print its URL')
    .option(
      '--deadline <duration>',
      'stop after this time, and keep what is downloaded',
      argument((raw) => requireTimer(parseDuration(raw), raw)),
    )
    .addOption(bandwidthLimitOption())
    .option('--prolog', 'for a Slurm prolog: exit with 0 even if staging fails')
    .addHelpText(
      'after',
      '\ndsc leases the copy to the Slurm job or pod, to --task, or to the calling shell or script, and never evicts a\nleased copy.\n\nExamples:\n  DATA=$(dsc prepare flowers)\n  dsc prepare flowers birds labels\n  dsc prepare flowers --task nightly-eval --ttl 3d\n  dsc prepare s3://open-data/flowers/ --anonymous --plan\n  export HF_HUB_CACHE=$(dsc prepare hf://org/model --hf) HF_HUB_OFFLINE=1\n  dsc prepare flowers --nodes gpu-01,gpu-02,gpu-03\n  dsc prepare flowers --stripe gpu-01,gpu-02,gpu-03     for dsc feed',
    )

type PrepareOptions = OptionsOf<typeof declare>

/** `dsc prepare`: stages a dataset if needed, leases it, and prints its path. */
export function prepareCommand(context: CliContext) {
  return declare().action(async (named, given) => {
    const { nodes, ...others } = given
    const options = nodes?.join() === 'all' ? { ...others, all: true as const } : given
    const work = () =>
      runWithinDeadline(context, options.deadline, (limited) => prepare(limited, named, options))
    await (options.prolog ? runAsProlog(context, named.join(', '), work) : work())
  })
}

async function prepare(
  context: CliContext,
  named: readonly string[],
  options: PrepareOptions,
): Promise<void> {
  await context.config(readBandwidthLimit(options))
  requireSingle(named, options)
  const { include, exclude, anonymous, endpoint, profile } = options
  const settings = { include, exclude, anonymous, endpoint, profile }
  const datasets: Dataset[] = []
  for (const raw of named) datasets.push(await resolveDataset(context, raw, settings)) // before anything is staged
  if (options.hf) datasets.forEach(requireRepository)
  if (options.stripe && (options.nodes || options.all || options.remote || options.plan)) {
    throw new DscError('USAGE', '--stripe goes with none of --nodes, --remote and --plan', {
      hint: 'dsc prepare --help',
    })
  }
  if (options.prefetch && (options.stripe || options.remote)) {
    throw new DscError('USAGE', '--prefetch goes with neither --stripe nor --remote', {
      hint: 'dsc prepare --help',
    })
  }
  const [dataset] = datasets
  if (dataset === undefined) return
  if (options.nodes || options.all || options.stripe || options.remote) {
    const isDone = await prepareElsewhere(context, dataset, options)
    if (isDone) return
  }
  const api = await context.openApi()
  const caller = await identify(context, options)
  const asked = { isRefresh: options.refresh === true, isPrefetch: options.prefetch === true }
  const { signal } = context
  if (options.plan) {
    const { formatPreparePlan } = await import('../output/format-prepare-plan.js')
    const plan = await api.planPrepare({ ...asked, dataset, parties: caller.parties }, { signal })
    context.report.result<'prepare --plan'>({ ...plan }, () => formatPreparePlan(plan))
    return
  }
  const lease = chooseHolder(caller, context.nowMs())
  const { reportProgress } = await import('../../cache/prepare/report-progress.js')
  const all: Leased[] = []
  try {
    for (const one of datasets) {
      const leased = await api.prepare(
        { ...asked, dataset: one, lease, mayWait: options.wait },
        { signal, onProgress: reportProgress(context.report, one.name, context.nowMs) },
      )
      context.report.progress(undefined)
      notePrepared(context.report, leased)
      all.push(leased)
    }
  } catch (error) {
    context.report.progress(undefined)
    noteStillLeased(context.report, all)
    throw error
  }
  reportPaths(context.report, all, { showsHubCache: options.hf === true })
}

async function identify(context: CliContext, { task, ttl: ttlMs }: PrepareOptions) {
  const { shares } = (await context.config()).cache.policy
  return identifyCaller({ environment: context.environment, task, ttlMs, shares })
}

/** Rejects options that say where one dataset goes, or show one, if there are several. */
function requireSingle(named: readonly string[], options: PrepareOptions): void {
  const alone = (['plan', 'nodes', 'all', 'stripe', 'remote'] as const).find((option) => options[option])
  if (named.length === 1 || alone === undefined) return
  const value = options[alone]
  throw new DscError('USAGE', `--${alone} takes one dataset, found ${named.length}`, {
    hint: `dsc prepare ${named[0]} --${alone}${Array.isArray(value) ? ` ${value.join(',')}` : ''}`,
  })
}

/** Handles the options about other nodes. Returns false if this node must prepare the dataset after all. */
async function prepareElsewhere(
  context: CliContext,
  dataset: Dataset,
  options: PrepareOptions,
): Promise<boolean> {
  const { prepareManyNodes, prepareRemotely } = await import('../prepare/prepare-elsewhere.js')
  const caller = await identify(context, options)
  await context.openRecord() // from here on, the record's clock counts
  const lease = chooseHolder(caller, context.nowMs())
  if (options.remote) return prepareRemotely(context, dataset, lease)
  const request = {
    dataset,
    lease,
    isRefresh: options.refresh === true,
    isPrefetch: options.prefetch,
    ...readBandwidthLimit(options),
  }
  if (options.stripe) {
    const { prepareStriped } = await import('../prepare/prepare-striped.js')
    await prepareStriped(context, { ...request, nodes: options.stripe })
  } else {
    await prepareManyNodes(context, { ...request, nodes: options.all ? undefined : options.nodes })
  }
  return true
}
