import { Command } from 'commander'
import { chooseHolder } from '../../cache/leases/choose-holder.js'
import { identifyCaller } from '../../cache/leases/identify-caller.js'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import type { PreparePlanAnswer } from '../../cache/prepare/prepared-answer.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { parseDuration, requireTimer } from '../../model/duration.js'
import { SOURCE_EXAMPLES } from '../../model/source-url.js'
import { bandwidthLimitOption, readBandwidthLimit } from '../arguments/bandwidth-limit-option.js'
import { taskOption, ttlOption } from '../arguments/lease-options.js'
import { argument } from '../arguments/parse-argument.js'
import { parseNodes } from '../arguments/parse-nodes.js'
import type { CliContext } from '../context.js'
import { reportPrepared } from '../output/report-prepared.js'
import { requireRepository } from '../prepare/hub-cache.js'
import { runAsProlog, runWithinDeadline } from '../prepare/within-deadline.js'

interface PrepareOptions {
  readonly task?: string
  readonly ttl?: number
  readonly plan?: true
  readonly refresh?: true
  readonly prefetch?: true
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  readonly hf?: true
  readonly wait: boolean
  readonly nodes?: readonly string[]
  readonly all?: true
  readonly stripe?: readonly string[]
  readonly remote?: true
  readonly prolog?: true
  readonly deadline?: number
  readonly bandwidthLimit?: number
}

/** `dsc prepare`: stages a dataset if needed, leases it, and prints its path. */
export function prepareCommand(context: CliContext): Command {
  return new Command('prepare')
    .description('stage a dataset on this node unless it is there, and print its path')
    .argument('<dataset>', `name of a dataset, or a source: ${SOURCE_EXAMPLES}`)
    .addOption(taskOption())
    .addOption(ttlOption())
    .option('--plan', 'show what would be fetched and evicted, and why; change nothing')
    .option('--refresh', 'look for a new version even if a copy is ready')
    .option(
      '--prefetch',
      'for a job that has not begun: take free and borrowed room only, nothing that a share is guaranteed',
    )
    .option('--include <glob...>', 'of a source URL: take only keys that match (relative to the source)')
    .option('--exclude <glob...>', 'of a source URL: leave out keys that match; wins over --include')
    .option('--hf', 'of a repository of a hub: print the folder for HF_HUB_CACHE instead of the path')
    .option('--no-wait', 'fail if another process is staging the dataset, instead of waiting for it')
    .option('--nodes <nodes>', 'stage on these nodes side by side, by their agents: a,b,c', parseNodes)
    .option(
      '--stripe <nodes>',
      'stage a share on each of these nodes, object i on node i mod N: a,b,c',
      parseNodes,
    )
    .option('--all', 'stage on every node whose agent reports')
    .option('--remote', 'where only another node has it, use it from there and print its URL')
    .option(
      '--deadline <duration>',
      'stop after this time; what is staged by then is kept',
      argument((raw) => requireTimer(parseDuration(raw), raw)),
    )
    .addOption(bandwidthLimitOption())
    .option('--prolog', 'for a Slurm prolog: exit with 0 also when staging fails')
    .addHelpText(
      'after',
      '\nThe copy is leased to the Slurm job or pod this runs in, else to --task, else to the calling shell or\nscript for as long as it lives; nothing evicts it meanwhile.\n\nExamples:\n  DATA=$(dsc prepare flowers)\n  dsc prepare flowers --task nightly-eval --ttl 3d\n  dsc prepare s3://ml-data/flowers/ --plan\n  export HF_HUB_CACHE=$(dsc prepare hf://org/model --hf) HF_HUB_OFFLINE=1\n  dsc prepare flowers --nodes gpu-01,gpu-02,gpu-03\n  dsc prepare flowers --stripe gpu-01,gpu-02,gpu-03     more than one disk holds; dsc feed reads all of it',
    )
    .action(async (raw: string, options: PrepareOptions) => {
      const work = () =>
        runWithinDeadline(context, options.deadline, (limited) => prepare(limited, raw, options))
      await (options.prolog ? runAsProlog(context, raw, work) : work())
    })
}

async function prepare(context: CliContext, raw: string, options: PrepareOptions): Promise<void> {
  await context.config(readBandwidthLimit(options))
  const dataset = await resolveDataset(context, raw, options)
  if (options.hf) requireRepository(dataset)
  if (options.stripe && (options.nodes || options.all || options.remote || options.plan)) {
    throw new DscError('USAGE', '--stripe goes with none of --nodes, --all, --remote and --plan', {
      hint: 'dsc prepare --help',
    })
  }
  if (options.prefetch && (options.stripe || options.remote)) {
    throw new DscError('USAGE', '--prefetch goes with neither --stripe nor --remote', {
      hint: 'dsc prepare --help',
    })
  }
  if (options.nodes || options.all || options.stripe || options.remote) {
    const isDone = await prepareElsewhere(context, dataset, options)
    if (isDone) return
  }
  const api = await context.openApi()
  const caller = identifyCaller({
    environment: context.environment,
    task: options.task,
    ttlMs: options.ttl,
    shares: (await context.config()).cache.policy.shares,
  })
  const asked = { dataset, isRefresh: options.refresh === true, isPrefetch: options.prefetch === true }
  const { signal } = context
  if (options.plan) {
    const { formatPreparePlan } = await import('../output/format-prepare-plan.js')
    const plan = await api.planPrepare({ ...asked, parties: caller.parties }, { signal })
    const answer: PreparePlanAnswer = { dsc: 1, ...plan }
    context.report.result(answer, () => formatPreparePlan(plan))
    return
  }
  const lease = chooseHolder(caller, context.nowMs())
  const { reportProgress } = await import('../../cache/prepare/report-progress.js')
  const prepared = await api.prepare(
    { ...asked, lease, mayWait: options.wait },
    { signal, onProgress: reportProgress(context.report, dataset.name, context.nowMs) },
  )
  context.report.progress(undefined)
  reportPrepared(context.report, prepared, { lease: prepared.lease, showsHubCache: options.hf === true })
}

/** Handles the options about other nodes. Returns false if this node must prepare the dataset after all. */
async function prepareElsewhere(
  context: CliContext,
  dataset: Dataset,
  options: PrepareOptions,
): Promise<boolean> {
  const { prepareManyNodes, prepareRemotely } = await import('../prepare/prepare-elsewhere.js')
  const caller = identifyCaller({
    environment: context.environment,
    task: options.task,
    ttlMs: options.ttl,
    shares: (await context.config()).cache.policy.shares,
  })
  await context.openRecord() // from here on, the record's clock counts
  const lease = chooseHolder(caller, context.nowMs())
  if (options.remote) return prepareRemotely(context, dataset, lease)
  const request = {
    dataset,
    lease,
    isRefresh: options.refresh === true,
    ...(options.prefetch && { isPrefetch: true }),
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
