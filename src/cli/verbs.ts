import type { CommandUnknownOpts as Command } from 'commander'
import type { CliContext } from './context.js'

/** A verb of `dsc`. Its module is loaded only when the verb is called, so that a warm `prepare` stays fast. */
export interface Verb {
  readonly name: string
  /** Its description, too, unless the command has a longer one. */
  readonly summary: string
  /** Its heading in `dsc --help`; undefined: not listed there, since a listed verb leads to it, or only scripts call it. */
  readonly group: string | undefined
  readonly load: () => Promise<(context: CliContext, loadProgram: LoadProgram) => Command>
}

/** Loads the whole tree of commands: slow, and only for completion. */
export type LoadProgram = () => Promise<Command>

const LOADERS = {
  prepare: async () => (await import('./commands/prepare.js')).prepareCommand,
  run: async () => (await import('./commands/run.js')).runCommand,
  release: async () => (await import('./commands/release.js')).releaseCommand,
  status: async () => (await import('./commands/status.js')).statusCommand,
  why: async () => (await import('./commands/why.js')).whyCommand,
  report: async () => (await import('./commands/report.js')).reportCommand,
  lock: async () => (await import('./commands/lock.js')).lockCommand,
  evict: async () => (await import('./commands/evict.js')).evictCommand,
  undo: async () => (await import('./commands/undo.js')).undoCommand,
  verify: async () => (await import('./commands/verify.js')).verifyCommand,
  cleanup: async () => (await import('./commands/cleanup.js')).cleanupCommand,
  init: async () => (await import('./commands/init.js')).initCommand,
  setup: async () => (await import('./commands/setup.js')).setupCommand,
  doctor: async () => (await import('./commands/doctor.js')).doctorCommand,
  dataset: async () => (await import('./commands/dataset.js')).datasetCommand,
  adopt: async () => (await import('./commands/adopt.js')).adoptCommand,
  agent: async () => (await import('./commands/agent.js')).agentCommand,
  record: async () => (await import('./commands/record.js')).recordCommand,
  feed: async () => (await import('./commands/feed.js')).feedCommand,
  exchange: async () => (await import('./commands/exchange.js')).exchangeCommand,
  memory: async () => (await import('./commands/memory.js')).memoryCommand,
  params: async () => (await import('./commands/params.js')).paramsCommand,
  leases: async () => (await import('./commands/leases.js')).leasesCommand,
  history: async () => (await import('./commands/history.js')).historyCommand,
  hint: async () => (await import('./commands/hint.js')).hintCommand,
  receipt: async () => (await import('./commands/receipt.js')).receiptCommand,
  unlock: async () => (await import('./commands/lock.js')).unlockCommand,
  repair: async () => (await import('./commands/repair.js')).repairCommand,
  config: async () => (await import('./commands/config.js')).configCommand,
  bench: async () => (await import('./commands/bench.js')).benchCommand,
  gateway: async () => (await import('./commands/gateway.js')).gatewayCommand,
  self: async () => (await import('./commands/self.js')).selfCommand,
  completion: async () => (await import('./commands/completion.js')).completionCommand,
} satisfies Record<string, Verb['load']>

/** The summaries of the verbs below their headings, in the order of `dsc --help`; '' lists those that it leaves out. */
const SUMMARIES: Readonly<Record<string, { readonly [Name in keyof typeof LOADERS]?: string }>> = {
  'Use data': {
    prepare: 'download a dataset if needed, lease it, print its path',
    run: 'prepare datasets, run a command, release them when it exits',
    release: 'end a lease',
  },
  Look: {
    status: 'show nodes, copies, leases and downloads, live',
    why: 'explain why a dataset is here, was evicted or was refused',
    report: 'show what the cache saved, who waited, and what to change',
  },
  'Keep order': {
    lock: 'never evict a dataset on this node',
    evict: 'delete idle copies on this node',
    undo: 'take back an eviction, cleanup, unlock or release',
    verify: 'check copies against their checksums, and repair them',
    cleanup: 'end dead leases, remove abandoned downloads, enforce limits',
  },
  'Set up': {
    init: 'write a commented dsc.yaml for this machine',
    setup: 'make this machine a node that its users share (root)',
    doctor: 'check this machine, its configuration and its sources',
    dataset: 'add, list and remove dataset names',
    adopt: 'take over folders that are on disk',
    agent: 'share copies with other nodes and S3 clients',
    record: 'move the record, claim or forget a node',
  },
  Train: {
    feed: 'feed shuffled samples to PyTorch',
    exchange: 'exchange gradients between ranks (experimental)',
    memory: 'plan GPU and host memory (experimental)',
    params: 'serve model parameters (experimental)',
  },
  '': {
    leases: 'list who uses which copy',
    history: 'list what happened, newest first',
    hint: 'list nodes that have a dataset',
    receipt: 'print the data versions that a job used, as Croissant',
    unlock: 'remove the lock of a dataset on this node',
    repair: 'download the lost stripes of a dataset again',
    config: 'show every setting, and where it comes from',
    bench: 'measure disk, source and record, and name the slow one',
    gateway: 'make keys for S3 clients of the agents',
    self: 'show version and install location, or update',
    completion: 'print or install a completion script',
  },
}

/** Every verb, in the order of `dsc --help`. */
export const VERBS: readonly Verb[] = Object.entries(SUMMARIES).flatMap(([heading, summaries]) =>
  Object.entries(summaries).map(([name, summary]) => {
    return { name, summary, group: heading || undefined, load: LOADERS[name as keyof typeof LOADERS] }
  }),
)
