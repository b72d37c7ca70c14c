import { Option } from 'commander'
import { closeAfter } from '../../failure/closers.js'
import { planSampleRoom } from '../../feed/arena/arena-runs.js'
import { rehearseFeed } from '../../feed/engine/rehearse-feed.js'
import { rehearseStall } from '../../feed/engine/rehearse-stall.js'
import { HeldFiles } from '../../feed/mapped/held-files.js'
import { DEFAULT_MEMORY_BYTES } from '../../feed/plan/arena-budget.js'
import {
  type Expectation,
  type ExpectationOptions,
  planBudgetOptions,
  planExpectation,
} from '../../feed/plan/expectation.js'
import { formatCount } from '../../model/format-count.js'
import { FEED_STARTS } from '../../open/feed-request.js'
import { indexFolder } from '../../open/index-folder.js'
import { openReadyFolder } from '../../open/open-dataset-folder.js'
import { formatsOf } from '../../samples/sample-encoding.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseCount } from '../arguments/parse-argument.js'
import { withSampleOptions } from '../arguments/sample-options.js'
import type { CliContext } from '../context.js'
import { parseK, parseMemory } from './feed-arguments.js'
import { showColdPlan } from './feed-plan-cold.js'
import { createStallCommand, readRequestCost } from './feed-plan-stall.js'

/** `dsc feed plan`. */
export function feedPlanCommand(context: CliContext) {
  return withSampleOptions(createStallCommand('plan'))
    .description('predict memory, requests and waiting')
    .argument('<dataset>', 'a dataset or a folder')
    .option('--batch <n>', 'samples in a batch of a rank', argument(parseCount), 64)
    .option('--ranks <n>', 'ranks on this machine', argument(parseCount), 1)
    .option('--nodes <n>', 'storage nodes (1: this disk)', argument(parseCount), 1)
    .option('--memory <size>', 'memory of the feed (default: 256MiB)', parseMemory)
    .option('--k <n>', 'samples per request', parseK, 'auto')
    .option('--refresh', 'list the samples again')
    .option('--cold', 'predict the first epoch of a node without a copy')
    .addOption(
      new Option('--start <when>', 'with --cold: when to start').choices(FEED_STARTS).default('arriving'),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  dsc feed plan flowers --batch 256 --ranks 8\n  dsc feed plan /data/flowers --batch 64 --json\n  dsc feed plan flowers --cold --fixed-ms 20 --bandwidth 120MB/s --step-ms 150\n  dsc feed plan flowers --cold --start unproven --fixed-ms 20 --bandwidth 120MB/s',
    )
    .action(async (target, options) => {
      const cost = await readRequestCost(options)
      const { batch, ranks, rate } = options
      const stepMs = rate === undefined ? options.stepMs : (1000 * batch * ranks) / rate
      if (options.cold) {
        const { split, only, as: format, start } = options
        const how = { split, only, format, start, globalBatch: batch * ranks, stepMs, cost }
        const coming = await showColdPlan(context, { target, ...how })
        if (coming !== undefined) noteEmptyEpoch(context, { samples: coming, batch, ranks })
        return
      }
      const dataset = await openReadyFolder(context, target, options.split)
      const listed = await closeAfter(
        indexFolder(context, dataset.folder, {
          split: dataset.split,
          isRefreshed: options.refresh ?? false,
          only: options.only,
          format: options.as,
          columns: options.columns,
          reading: { kind: 'either' },
          copy: dataset.copy,
        }),
        dataset.release,
      )
      const { table, root, isCached, leftOut } = listed
      const expectation = await rehearse(table, {
        sampleCount: table.count,
        totalBytes: table.totalBytes,
        ...planSampleRoom(table),
        memoryBytes: options.memory ?? DEFAULT_MEMORY_BYTES,
        nodeCount: options.nodes,
        batchSize: batch,
        ranks,
        k: options.k,
        cost,
        stepMs,
      })
      const isMapped = options.nodes === 1 && !listed.groups && HeldFiles.areMappable(root, table)
      const { count: samples, totalBytes: bytes, encodings, fingerprint } = table
      const answer: AnswerOf<'feed plan'> = {
        path: root,
        format: formatsOf(encodings),
        samples,
        sampleBytes: bytes,
        fingerprint,
        isListedBefore: isCached,
        isMapped,
        leftOut,
        ...expectation,
      }
      context.report.result(answer, () => formatPlan(expectation, { path: root, samples, bytes }))
      if (isMapped)
        context.report.note(
          'dsc: these files are read-only, so trainers will map them directly. This plan is for --no-map',
        )
      const short = expectation.isFeasible ? formatShortMemory(expectation) : undefined
      if (short) context.report.note(short)
      noteEmptyEpoch(context, { samples, batch, ranks })
    })
}

/** Notes that there are too few samples for one step of all ranks. */
function noteEmptyEpoch(
  context: CliContext,
  { samples, batch, ranks }: { readonly samples: number; readonly batch: number; readonly ranks: number },
): void {
  if (samples >= batch * ranks) return
  context.report.note(
    `dsc: the dataset has less than a global batch of ${formatCount(batch * ranks, 'sample')}, so with last='drop' an epoch has no step\n` +
      `  try: ${samples < ranks ? 'fewer --ranks' : `--batch ${Math.floor(samples / ranks)} or less`}, or open the feed with last='pad'`,
  )
}

/** Plans a feed; by a simulation if that takes only seconds. */
async function rehearse(table: SampleTable, options: ExpectationOptions): Promise<Expectation> {
  const byLaw = planExpectation(options)
  if (!byLaw.isFeasible || byLaw.stepsPerEpoch === 0 || table.count > MAX_REHEARSED_SAMPLES) return byLaw
  const budget = planBudgetOptions(options)
  const { stepMs, cost } = options
  const stall =
    cost && stepMs !== undefined ? await rehearseStall(table, budget, { stepMs, cost }) : undefined
  return planExpectation({ ...options, rehearsal: { ...(await rehearseFeed(table, budget)), stall } })
}

const MAX_REHEARSED_SAMPLES = 200_000

/** Explains that requests are small for lack of memory, and how much they would need. */
function formatShortMemory({ k, memoryForRequestsBytes }: Expectation): string | undefined {
  if (memoryForRequestsBytes === null) return undefined
  return (
    `dsc: the memory leaves ${formatCount(k, 'sample')} a request, less than one batch takes: each batch waits for several\n` +
    `  try: --memory ${memoryForRequestsBytes / 2 ** 20}MiB, or a smaller --batch`
  )
}

const STALL_REASONS = {
  none: '',
  rate: ', for the nodes send too slowly',
  latency: ', for too little is asked for ahead (a larger --memory)',
} as const

function formatPlan(
  plan: Expectation,
  dataset: { readonly path: string; readonly samples: number; readonly bytes: number },
): string {
  const { path, samples, bytes } = dataset
  const mib = (size: number) => `${(size / 2 ** 20).toFixed(1)} MiB`
  const percent = (share: number) => `${(100 * share).toFixed(2)} %`
  const lines = [
    `${path}: ${formatCount(samples, 'sample')}, ${mib(bytes)}`,
    `steps per epoch          ${plan.stepsPerEpoch}`,
    `samples per request (k)  ${plan.k}`,
    `requests per epoch       ${plan.requestsPerEpoch} in the first, ${plan.requestsPerLaterEpoch} in a later one${plan.isRehearsed ? '' : ' (by law; up to 200,000 samples are rehearsed)'}`,
    `memory                   ${mib(plan.memoryBytes)}: prefetch ${mib(plan.prefetchBytes)}, clients ${mib(plan.leaseBytes)}, next epoch ${mib(plan.carryBytes)}`,
    `prefetch window (W)      ${formatCount(plan.windowSamples, 'sample')}`,
    `kept for the next epoch  ${percent(plan.carryShare)} of the samples; later epochs read the rest`,
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
