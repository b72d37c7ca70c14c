import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { reportProgress } from '../../library/report-progress.js'
import { resolveDataset } from '../../library/resolve-dataset.js'
import type { ProcessHolder } from '../../model/lease.js'
import { identifyProcess } from '../../platform/processes.js'
import { identifyCaller } from '../../stage/identify-caller.js'
import { chooseHolder } from '../../stage/plan/choose-holder.js'
import { prepareDataset } from '../../stage/prepare-dataset.js'
import { bandwidthLimitOption, readBandwidthLimit } from '../bandwidth-limit-option.js'
import type { CliContext } from '../context.js'
import { taskOption } from '../lease-options.js'
import { findExecutable, spawnCommand } from '../spawn-command.js'

/** A lease whose process cannot be seen from where cleanup runs is kept alive by being renewed. */
const RENEW_INTERVAL_MS = 10 * 60_000

interface RunOptions {
  readonly task?: string
  readonly refresh?: true
  readonly bandwidthLimit?: number
}

/** `dsc run`: prepares datasets, runs a command while they are leased, releases them however it ends. */
export function runCommand(context: CliContext): Command {
  return new Command('run')
    .description('prepare datasets, run a command with their paths, release them when it ends')
    .usage('<dataset>... -- <command> [arguments...]')
    .argument('<datasets...>', 'datasets to prepare; the command follows after --')
    .addOption(
      taskOption('name of the task in the record (default: the Slurm job, the pod, or this process)'),
    )
    .addOption(bandwidthLimitOption())
    .option('--refresh', 'look for new versions even if copies are ready')
    .addHelpText(
      'after',
      "\nThe command finds the first path in DSC_DATASET and each in DSC_DATASET_<NAME> (upper case, other\ncharacters than letters and digits become _). Its exit code is returned.\n\nExamples:\n  dsc run flowers -- python train.py\n  dsc run imagenet labels -- sh -c 'ls $DSC_DATASET_LABELS'",
    )
    .action(async (datasets: readonly string[], options: RunOptions) => {
      const [name, ...words] = context.commandWords
      if (name === undefined) {
        throw new DscError('USAGE', 'no command: expected datasets, then --, then a command', {
          hint: `dsc run ${datasets.join(' ')} -- python train.py`,
        })
      }
      const executable = findExecutable(name, context.environment)
      const own = identifyProcess(process.pid)
      if (own === undefined) throw new DscError('USAGE', 'cannot read /proc: dsc run needs Linux')
      await context.config(readBandwidthLimit(options))
      const cache = await context.openCache()
      const caller = identifyCaller({
        environment: context.environment,
        task: options.task,
        isOwnProcess: true,
      })
      const { task } = chooseHolder(caller, context.nowMs())
      const leaseIds: string[] = []
      const variables: Record<string, string> = {}
      try {
        for (const raw of datasets) {
          const dataset = await resolveDataset(context, raw)
          const prepared = await prepareDataset(
            cache,
            {
              dataset,
              lease: { task, holder: own, expiresAtMs: null },
              isRefresh: options.refresh === true,
              mayWait: true,
            },
            {
              signal: context.signal,
              onProgress: reportProgress(context.report, dataset.name, context.nowMs),
            },
          )
          context.report.progress(undefined)
          leaseIds.push(prepared.leaseId)
          variables.DSC_DATASET ??= prepared.copy.path
          variables[`DSC_DATASET_${dataset.name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`] =
            prepared.copy.path
        }
        const child = spawnCommand(executable, words, { ...context.environment, ...variables })
        // The leases follow the command: if dsc itself is killed, what the command reads stays until it ends.
        const holder = child.pid === undefined ? undefined : identifyProcess(child.pid)
        const handedOver = holder && inPassing(() => handOver(leaseIds, holder))
        const renewal = setInterval(() => void inPassing(() => renew(leaseIds)), RENEW_INTERVAL_MS)
        process.exitCode = await child.exitCode.finally(() => clearInterval(renewal))
        await handedOver
      } finally {
        await inPassing(() => release(leaseIds))
      }

      async function handOver(ids: readonly string[], holder: ProcessHolder): Promise<void> {
        for (const leaseId of ids) await cache.record.handOverLease(leaseId, holder, context.nowMs())
      }

      async function release(ids: readonly string[]): Promise<void> {
        for (const leaseId of ids) await cache.record.releaseUses({ leaseId }, context.nowMs())
      }

      async function renew(ids: readonly string[]): Promise<void> {
        for (const leaseId of ids) await cache.record.renewLease(leaseId, null, context.nowMs())
      }

      /** What becomes of the record neither ends the command nor hides its exit code: leases end with their process. */
      async function inPassing(work: () => Promise<void>): Promise<void> {
        try {
          await work()
        } catch (error) {
          context.report.note(`dsc: ${error instanceof Error ? error.message : String(error)}`)
        }
      }
    })
}
