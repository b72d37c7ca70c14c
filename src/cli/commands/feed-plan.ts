import { Command } from 'commander'
import { DEFAULT_MEMORY_BYTES } from '../../feed/open-feeder.js'
import { type Expectation, planExpectation } from '../../feed/plan/expectation.js'
import { indexSamples } from '../../feed/samples/index-samples.js'
import { openDatasetFolder } from '../../library/open-dataset-folder.js'
import { samplesCacheFolder } from '../../library/samples-folder.js'
import { formatCount } from '../../model/format-count.js'
import type { CliContext } from '../context.js'
import { parseCount, parseExtensions, parseK, parseMemory } from './feed-arguments.js'
import { readRequestCost, type StallArguments, withStallOptions } from './feed-plan-stall.js'

interface PlanOptions extends StallArguments {
  readonly split?: string
  readonly only?: readonly string[]
  readonly batch: number
  readonly ranks: number
  readonly nodes: number
  readonly memory: number
  readonly k: number | 'auto'
  readonly refresh?: true
}

export function feedPlanCommand(context: CliContext): Command {
  return withStallOptions(new Command('plan'))
    .description('say what a feed will do, before it runs: requests, memory, hits, reads, waiting')
    .argument('<dataset>', 'a directory, or the name of a prepared dataset')
    .option('--split <folder>', 'folder of the dataset to feed')
    .option('--only <extensions>', 'only files that end so, for example png,jpg', parseExtensions)
    .option('--batch <n>', 'samples in a batch of one rank', parseCount, 64)
    .option('--ranks <n>', 'ranks on this machine', parseCount, 1)
    .option('--nodes <n>', 'storage nodes (1: this disk)', parseCount, 1)
    .option('--memory <size>', 'memory of the feed (default: 256MiB)', parseMemory)
    .option('--k <n>', 'samples per request', parseK, 'auto')
    .option('--refresh', 'list the samples again')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc feed plan flowers --batch 256 --ranks 8\n  dsc feed plan /data/flowers --batch 64 --json',
    )
    .action(async (target: string, options: PlanOptions) => {
      const cost = await readRequestCost(options)
      const { batch, ranks, rate } = options
      const dataset = await openDatasetFolder(context, target, options.split)
      const { table, root, isCached } = await indexSamples(dataset.folder, {
        cacheFolder: samplesCacheFolder(context.environment),
        isRefreshed: options.refresh ?? false,
        extensions: options.only,
        onProgress: (done, total) =>
          context.report.progress(`listing samples: ${done} of ${formatCount(total, 'file')}`),
      }).finally(dataset.release)
      context.report.progress(undefined)
      const expectation = planExpectation({
        sampleCount: table.count,
        totalBytes: table.totalBytes,
        largestBytes: table.largestBytes,
        memoryBytes: options.memory ?? DEFAULT_MEMORY_BYTES,
        nodeCount: options.nodes,
        batchSize: batch,
        ranks,
        k: options.k,
        cost,
        stepMs: rate === undefined ? options.stepMs : (1000 * batch * ranks) / rate,
      })
      const { count: samples, totalBytes: bytes, format, fingerprint } = table
      const result = {
        path: root,
        format,
        samples,
        bytes,
        fingerprint,
        isListedBefore: isCached,
        ...expectation,
      }
      context.report.result(result, () => formatPlan(root, samples, bytes, expectation))
      if (expectation.stepsPerEpoch === 0) {
        context.report.note(
          `dsc: the dataset has less than a global batch of ${formatCount(batch * ranks, 'sample')}, so with last='drop' an epoch has no step\n` +
            `  try: ${samples < ranks ? 'fewer --ranks' : `--batch ${Math.floor(samples / ranks)} or less`}, or open the feed with last='pad'`,
        )
      }
    })
}

const STALL_REASONS = {
  none: '',
  rate: ', for the nodes send too slowly',
  latency: ', for too little is asked for ahead (a larger --memory)',
} as const

function formatPlan(path: string, samples: number, bytes: number, plan: Expectation): string {
  const mib = (size: number) => `${(size / 2 ** 20).toFixed(1)} MiB`
  const percent = (share: number) => `${(100 * share).toFixed(2)} %`
  const lines = [
    `${path}: ${formatCount(samples, 'sample')}, ${mib(bytes)}`,
    `steps per epoch          ${plan.stepsPerEpoch}`,
    `samples per request (k)  ${plan.k}`,
    `requests per epoch       ${plan.requestsPerEpoch} in the first, ${plan.requestsPerLaterEpoch} in a later one`,
    `memory                   ${mib(plan.memoryBytes)}: prefetch ${mib(plan.prefetchBytes)}, clients ${mib(plan.leaseBytes)}, next epoch ${mib(plan.carryBytes)}`,
    `prefetch window (W)      ${formatCount(plan.windowSamples, 'sample')}`,
    `kept for the next epoch  ${percent(plan.carryShare)} of the samples: so many fewer reads from the second epoch on`,
    `hit rate                 ${percent(plan.hitRate)} by the miss trigger alone; low-water requests come before the misses`,
  ]
  const rate = (bytesPerSecond: number) => `${mib(bytesPerSecond)}/s`
  const { cost, stall } = plan
  if (cost)
    lines.push(
      `a request costs          ${cost.fixedMs.toFixed(2)} ms (t0), then ${rate(1000 * cost.bytesPerMs)} from each node`,
    )
  if (stall) {
    lines.push(
      `training asks for        ${rate(stall.demandBytesPerSecond)} in later epochs; the nodes send up to ${rate(stall.supplyBytesPerSecond)}`,
      `expected stall           ${percent(stall.stallShare)} of the time${STALL_REASONS[stall.cause]}; ${percent(stall.missTriggerStallShare)} by the miss trigger alone`,
    )
  }
  if (!plan.isFeasible) lines.push(`too small                one batch needs ${mib(plan.leastBytes)}`)
  return lines.join('\n')
}
