import type { Command } from 'commander'
import type { CliContext } from './context.js'

/** A verb of `dsc`. Its module is loaded only when the verb is called, so that a warm `prepare` stays fast. */
export interface Verb {
  readonly name: string
  readonly summary: string
  /** Its heading in `dsc --help`; undefined: not listed there, since a listed verb leads to it, or only scripts call it. */
  readonly group?: string
  readonly load: () => Promise<(context: CliContext, loadProgram: LoadProgram) => Command>
}

/** Loads the whole tree of commands: slow, and only for completion. */
export type LoadProgram = () => Promise<Command>

/** Every verb, in the order of `dsc --help`. */
export const VERBS: readonly Verb[] = [
  {
    name: 'prepare',
    group: 'Use data',
    summary: 'download a dataset if needed, lease it, print its path',
    load: async () => (await import('./commands/prepare.js')).prepareCommand,
  },
  {
    name: 'run',
    group: 'Use data',
    summary: 'prepare datasets, run a command, release them when it exits',
    load: async () => (await import('./commands/run.js')).runCommand,
  },
  {
    name: 'release',
    group: 'Use data',
    summary: 'end a lease',
    load: async () => (await import('./commands/release.js')).releaseCommand,
  },
  {
    name: 'status',
    group: 'Look',
    summary: 'show nodes, copies, leases and downloads, live',
    load: async () => (await import('./commands/status.js')).statusCommand,
  },
  {
    name: 'why',
    group: 'Look',
    summary: 'explain why a dataset is here, was evicted or was refused',
    load: async () => (await import('./commands/why.js')).whyCommand,
  },
  {
    name: 'report',
    group: 'Look',
    summary: 'show what the cache saved, who waited, and what to change',
    load: async () => (await import('./commands/report.js')).reportCommand,
  },
  {
    name: 'lock',
    group: 'Keep order',
    summary: 'never evict a dataset on this node',
    load: async () => (await import('./commands/lock.js')).lockCommand,
  },
  {
    name: 'evict',
    group: 'Keep order',
    summary: 'delete idle copies on this node',
    load: async () => (await import('./commands/evict.js')).evictCommand,
  },
  {
    name: 'undo',
    group: 'Keep order',
    summary: 'take back an eviction, cleanup, unlock or release',
    load: async () => (await import('./commands/undo.js')).undoCommand,
  },
  {
    name: 'verify',
    group: 'Keep order',
    summary: 'check copies against their checksums, and repair them',
    load: async () => (await import('./commands/verify.js')).verifyCommand,
  },
  {
    name: 'cleanup',
    group: 'Keep order',
    summary: 'end dead leases, remove abandoned downloads, enforce limits',
    load: async () => (await import('./commands/cleanup.js')).cleanupCommand,
  },
  {
    name: 'init',
    group: 'Set up',
    summary: 'write a commented dsc.yaml for this machine',
    load: async () => (await import('./commands/init.js')).initCommand,
  },
  {
    name: 'setup',
    group: 'Set up',
    summary: 'make this machine a node that its users share (root)',
    load: async () => (await import('./commands/setup.js')).setupCommand,
  },
  {
    name: 'doctor',
    group: 'Set up',
    summary: 'check this machine, its configuration and its sources',
    load: async () => (await import('./commands/doctor.js')).doctorCommand,
  },
  {
    name: 'dataset',
    group: 'Set up',
    summary: 'add, list and remove dataset names',
    load: async () => (await import('./commands/dataset.js')).datasetCommand,
  },
  {
    name: 'adopt',
    group: 'Set up',
    summary: 'take over folders that are on disk',
    load: async () => (await import('./commands/adopt.js')).adoptCommand,
  },
  {
    name: 'agent',
    group: 'Set up',
    summary: 'share copies with other nodes and S3 clients',
    load: async () => (await import('./commands/agent.js')).agentCommand,
  },
  {
    name: 'record',
    group: 'Set up',
    summary: 'move the record, claim or forget a node',
    load: async () => (await import('./commands/record.js')).recordCommand,
  },
  {
    name: 'feed',
    group: 'Train',
    summary: 'feed shuffled samples to PyTorch',
    load: async () => (await import('./commands/feed.js')).feedCommand,
  },
  {
    name: 'exchange',
    group: 'Train',
    summary: 'exchange gradients between ranks (experimental)',
    load: async () => (await import('./commands/exchange.js')).exchangeCommand,
  },
  {
    name: 'memory',
    group: 'Train',
    summary: 'plan GPU and host memory (experimental)',
    load: async () => (await import('./commands/memory.js')).memoryCommand,
  },
  {
    name: 'params',
    group: 'Train',
    summary: 'serve model parameters (experimental)',
    load: async () => (await import('./commands/params.js')).paramsCommand,
  },
  {
    name: 'leases',
    summary: 'list who uses which copy',
    load: async () => (await import('./commands/leases.js')).leasesCommand,
  },
  {
    name: 'history',
    summary: 'list what happened, newest first',
    load: async () => (await import('./commands/history.js')).historyCommand,
  },
  {
    name: 'hint',
    summary: 'list nodes that have a dataset',
    load: async () => (await import('./commands/hint.js')).hintCommand,
  },
  {
    name: 'receipt',
    summary: 'print the data versions that a job used, as Croissant',
    load: async () => (await import('./commands/receipt.js')).receiptCommand,
  },
  {
    name: 'unlock',
    summary: 'remove the lock of a dataset on this node',
    load: async () => (await import('./commands/lock.js')).unlockCommand,
  },
  {
    name: 'repair',
    summary: 'download the lost stripes of a dataset again',
    load: async () => (await import('./commands/repair.js')).repairCommand,
  },
  {
    name: 'config',
    summary: 'show every setting, and where it comes from',
    load: async () => (await import('./commands/config.js')).configCommand,
  },
  {
    name: 'bench',
    summary: 'measure disk, source and record, and name the slow one',
    load: async () => (await import('./commands/bench.js')).benchCommand,
  },
  {
    name: 'gateway',
    summary: 'make keys for S3 clients of the agents',
    load: async () => (await import('./commands/gateway.js')).gatewayCommand,
  },
  {
    name: 'self',
    summary: 'show version and install location, or update',
    load: async () => (await import('./commands/self.js')).selfCommand,
  },
  {
    name: 'completion',
    summary: 'print or install a completion script',
    load: async () => (await import('./commands/completion.js')).completionCommand,
  },
]
