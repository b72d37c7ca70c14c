import { Command } from 'commander'
import { chooseHolder } from '../../cache/leases/choose-holder.js'
import { identifyCaller } from '../../cache/leases/identify-caller.js'
import { resolveDataset } from '../../cache/names/resolve-dataset.js'
import { reportProgress } from '../../cache/prepare/report-progress.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { identifyProcess } from '../../platform/processes.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { bandwidthLimitOption, readBandwidthLimit } from '../arguments/bandwidth-limit-option.js'
import { taskOption } from '../arguments/lease-options.js'
import type { CliContext } from '../context.js'
import { type HubView, openHubView } from '../prepare/hub-cache.js'
import { findExecutable, mayRun, spawnCommand } from '../spawn-command.js'

/** Time between renewals of a lease whose process cleanup cannot see, in ms. */
const RENEW_INTERVAL_MS = 10 * 60_000

/** The line that was probably meant: often only the `--` before the command is missing. */
export function suggestRun(words: readonly string[], isCommand: (word: string) => boolean): string {
  const at = words.findIndex((word, index) => index > 0 && isCommand(word))
  const [datasets, command] = at < 0 ? [words, ['python', 'train.py']] : [words.slice(0, at), words.slice(at)]
  return `dsc run ${datasets.join(' ')} -- ${command.join(' ')}`
}

/** `dsc run`: prepares datasets, runs a command while they are leased, releases them however it ends. */
export function runCommand(context: CliContext) {
  return new Command('run')
    .usage('<dataset>... -- <command> [arguments...]')
    .argument('<datasets...>', 'datasets, then -- and the command')
    .addOption(taskOption('name of the task (default: the Slurm job, the pod, or this process)'))
    .addOption(bandwidthLimitOption())
    .option('--refresh', 'check the sources for new versions')
    .addHelpText(
      'after',
      "\nThe command finds the first path in DSC_DATASET and each in DSC_DATASET_<NAME>. Returns its exit code.\nFor hf:// sources, dsc sets HF_HUB_CACHE and HF_HUB_OFFLINE (models) or HF_ENDPOINT (datasets).\n\nExamples:\n  dsc run flowers -- python train.py\n  dsc run hf://org/model -- python serve.py\n  dsc run imagenet labels -- sh -c 'ls $DSC_DATASET_LABELS'",
    )
    .action(async (datasets, options) => {
      const [name, ...words] = context.commandWords
      if (name === undefined) {
        throw new DscError('USAGE', 'no command: expected datasets, then --, then a command', {
          hint: suggestRun(datasets, (word) => mayRun(word, context.environment)),
        })
      }
      const executable = findExecutable(name, context.environment)
      await context.config(readBandwidthLimit(options))
      const leaseIds: string[] = []
      let hub: HubView | undefined
      try {
        const copies = await prepareAll(context, { datasets, ...options, leaseIds })
        const { root } = (await context.config()).cache
        hub = await openHubView(root, copies, context.environment)
        const variables = { ...nameVariables(copies), ...hub.variables }
        await runLeased(context, { executable, words, variables, leaseIds })
      } finally {
        hub?.close()
        await forEachLease(context, leaseIds, (record, leaseId) =>
          record.releaseUses({ leaseId }, context.nowMs()),
        )
      }
    })
}

/** Prepares each dataset for this process; adds the leases to `leaseIds` and returns the copies. */
async function prepareAll(
  context: CliContext,
  wanted: {
    readonly datasets: readonly string[]
    readonly task?: string
    readonly refresh?: true
    readonly leaseIds: string[]
  },
): Promise<readonly Copy[]> {
  const { environment, report, signal, nowMs } = context
  const { task: named, refresh } = wanted
  const holder = identifyProcess(process.pid)
  if (holder === undefined) throw new DscError('USAGE', 'cannot read /proc: dsc run needs Linux')
  const api = await context.openApi()
  const { shares } = (await context.config()).cache.policy
  const caller = identifyCaller({ environment, task: named, isOwnProcess: true, shares })
  const { task, parties } = chooseHolder(caller, nowMs())
  const lease = { task, holder, expiresAtMs: null, parties }
  const datasets: Dataset[] = []
  for (const raw of wanted.datasets) datasets.push(await resolveDataset(context, raw)) // before anything is staged
  const copies: Copy[] = []
  for (const dataset of datasets) {
    const prepared = await api.prepare(
      { dataset, lease, isRefresh: refresh === true, mayWait: true },
      { signal, onProgress: reportProgress(report, dataset.name, nowMs) },
    )
    report.progress(undefined)
    wanted.leaseIds.push(prepared.leaseId)
    copies.push(prepared.copy)
  }
  return copies
}

/** The command's variables: the first path, and each path under the name of its dataset. */
function nameVariables(copies: readonly Copy[]): Readonly<Record<string, string>> {
  return Object.fromEntries([
    ...copies.slice(0, 1).map(({ path }) => ['DSC_DATASET', path]),
    ...copies.map(({ dataset, path }) => [variableOf(dataset), path]),
  ])
}

function variableOf(dataset: string): string {
  return `DSC_DATASET_${dataset.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`
}

/** Runs the command and gives it the leases, so that its data stays even if dsc itself is killed. */
async function runLeased(
  context: CliContext,
  run: {
    readonly executable: string
    readonly words: readonly string[]
    readonly variables: Readonly<Record<string, string>>
    readonly leaseIds: readonly string[]
  },
): Promise<void> {
  const environment = { ...context.environment, ...run.variables }
  const child = spawnCommand(run.executable, run.words, { environment })
  const holder = child.pid === undefined ? undefined : identifyProcess(child.pid)
  const handedOver =
    holder &&
    forEachLease(context, run.leaseIds, (record, leaseId) =>
      record.handOverLease(leaseId, holder, context.nowMs()),
    )
  const renewal = setInterval(() => {
    void forEachLease(context, run.leaseIds, (record, leaseId) =>
      record.renewLease(leaseId, null, context.nowMs()),
    )
  }, RENEW_INTERVAL_MS)
  process.exitCode = await child.exitCode.finally(() => clearInterval(renewal))
  await handedOver
}

/** A failure of the record neither ends the command nor hides its exit code: leases end with their process. */
async function forEachLease(
  context: CliContext,
  leaseIds: readonly string[],
  work: (record: RecordStore, leaseId: string) => Promise<unknown>,
): Promise<void> {
  try {
    const record = await context.openRecord()
    for (const leaseId of leaseIds) await work(record, leaseId)
  } catch (error) {
    context.report.note(`dsc: ${error instanceof Error ? error.message : String(error)}`)
  }
}
