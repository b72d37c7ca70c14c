import { dirname, join } from 'node:path'
import { atEnd } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { HeadspaceProbe, type Pace, type WorkerHeadspace } from '../../feed/session/headspace.js'
import { checkProcess, identifyProcess } from '../../platform/processes.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseCount, parseWholeNumber } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import type { formatTable as FormatTable, TableColumn } from '../output/text-table.js'
import { findExecutable, spawnCommand } from '../spawn-command.js'
import { defaultSocketPath } from './feed-arguments.js'
import { createFeedCommand, type FeedOptions, openEngineFor } from './feed-source.js'

/** How long a trainer may take to end before it is killed, in ms. */
const GRACE_MS = 30_000

/** `dsc feed headspace`: how much faster training would be if data cost no time. */
export function feedHeadspaceCommand(context: CliContext) {
  return createFeedCommand('headspace')
    .description('measure how much faster training would be with free data')
    .option('--batches <n>', 'batches of each worker to measure', argument(parseCount), 200)
    .option('--warmup <n>', 'batches of each worker to skip first', argument(parseWholeNumber), 50)
    .addHelpText(
      'after',
      '\nThe trainer follows after --, and finds the feed by DSC_FEED_SOCKET. It gets real batches, then the same batches\nfrom memory, and is ended. Delete the checkpoints that it writes. Its output goes to stderr.\n\nExamples:\n  dsc feed headspace flowers --seed 42 -- python train.py\n  dsc feed headspace flowers --batches 500 -- torchrun --nproc-per-node 8 train.py',
    )
    .action(async (target, options) => {
      const [name, ...words] = context.commandWords
      if (name === undefined)
        throw new DscError('USAGE', 'no trainer: expected -- and the command that trains', {
          hint: `dsc feed headspace ${target ?? '<dataset>'} -- python train.py`,
        })
      const executable = findExecutable(name, context.environment)
      const probe = new HeadspaceProbe({ batches: options.batches, warmup: options.warmup })
      await train(context, { target, options, probe, executable, words })
      const workers = probe.list()
      if (workers.length === 0) throw tooFew(probe, options)
      const result = summarize(workers)
      // Loaded last: `dsc feed serve` loads this module, too, and no table.
      const { formatTable } = await import('../output/text-table.js')
      context.report.result(result, () => formatHeadspace(result, formatTable))
    })
}

/** Runs the trainer until all of its workers are measured, or it ends by itself. */
async function train(
  context: CliContext,
  trial: {
    readonly target: string | undefined
    readonly options: FeedOptions
    readonly probe: HeadspaceProbe
    readonly executable: string
    readonly words: readonly string[]
  },
): Promise<void> {
  const { target, options, probe, executable, words } = trial
  const engine = await openEngineFor(target, options, context)
  const folder = dirname(defaultSocketPath({ ...context.environment, DSC_FEED_SOCKET: undefined }))
  const socketPath = join(folder, `headspace-${process.pid}.sock`)
  await using _ = atEnd(() => engine.close())
  const { SessionServer } = await import('../../feed/session/session-server.js')
  const server = await SessionServer.open({ engine, socketPath, probe })
  await using _server = atEnd(() => server.close())
  const environment = { ...context.environment, DSC_FEED_SOCKET: socketPath }
  const child = spawnCommand(executable, words, { environment, output: 'stderr' })
  const isMeasured = await Promise.race([probe.finished.then(() => true), child.exitCode.then(() => false)])
  if (isMeasured && child.pid !== undefined) await end(child, child.pid, probe.pids)
}

/** Ends the trainer, then the workers that it leaves behind: PyTorch's workers survive when their parent is killed. */
async function end(
  { exitCode }: ReturnType<typeof spawnCommand>,
  pid: number,
  readers: ReadonlySet<number>,
): Promise<void> {
  const workers = [...readers].map((reader) => identifyProcess(reader)).filter((found) => found !== undefined)
  kill(pid, 'SIGTERM')
  const timer = setTimeout(() => kill(pid, 'SIGKILL'), GRACE_MS)
  await exitCode.finally(() => clearTimeout(timer))
  for (const worker of workers) if (checkProcess(worker, 0) === 'alive') kill(worker.pid, 'SIGKILL')
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has already ended, or belongs to another user.
  }
}

function tooFew(
  probe: HeadspaceProbe,
  { batches, warmup }: { readonly batches: number; readonly warmup: number },
): DscError {
  const had = Number.isFinite(probe.leastDelivered) ? probe.leastDelivered : 0
  return new DscError(
    'USAGE',
    had === 0
      ? 'the trainer ended and took no batch from this feed'
      : `the trainer ended after ${had} batches of its slowest worker: ${warmup} to warm up and twice ${batches} to be measured are needed, and a few at the beginning of each epoch`,
    {
      hint:
        had === 0
          ? 'FeedDataset or FeedLoader reads from DSC_FEED_SOCKET unless it is told another socket'
          : `dsc feed headspace --batches ${Math.max(1, Math.floor(had / 4))} --warmup ${Math.floor(had / 4)}, or more epochs`,
    },
  )
}

function summarize(workers: readonly WorkerHeadspace[]): AnswerOf<'feed headspace'> {
  const slowest = (of: (worker: WorkerHeadspace) => Pace) =>
    Math.max(...workers.map((worker) => of(worker).secondsPerBatch))
  const noises = workers.flatMap(({ asItIs, free }) => [asItIs.noise, free.noise])
  const fasterIfFree = slowest(({ asItIs }) => asItIs) / slowest(({ free }) => free) - 1
  return { fasterIfFree, noise: Math.max(...noises), workers }
}

type Shown = AnswerOf<'feed headspace'>['workers'][number]

function formatHeadspace(
  { fasterIfFree, noise, workers }: AnswerOf<'feed headspace'>,
  formatTable: typeof FormatTable,
): string {
  const ms = ({ secondsPerBatch }: Pace) => (1000 * secondsPerBatch).toFixed(2)
  const faster = ({ asItIs, free }: Shown) => asItIs.secondsPerBatch / free.secondsPerBatch - 1
  const columns: readonly TableColumn<Shown>[] = [
    { title: 'RANK', align: 'right', cell: ({ rank }) => String(rank) },
    { title: 'WORKER', align: 'right', cell: ({ worker }) => String(worker) },
    { title: 'MS A BATCH', align: 'right', cell: ({ asItIs }) => ms(asItIs) },
    { title: 'IF DATA WERE FREE', align: 'right', cell: ({ free }) => ms(free) },
    { title: 'FASTER', align: 'right', cell: (worker) => percent(faster(worker)) },
    {
      title: 'NOISE',
      align: 'right',
      cell: ({ asItIs, free }) => percent(Math.max(asItIs.noise, free.noise)),
    },
  ]
  const verdict =
    fasterIfFree <= Math.max(noise, 0.02)
      ? 'Data costs training nothing that can be told from noise: look elsewhere.'
      : `Training would be ${percent(fasterIfFree)} faster if data were free: dsc feed status says what it waits for.`
  return `${formatTable(workers, columns, undefined)}\n\n${verdict}`
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)}%`
}
