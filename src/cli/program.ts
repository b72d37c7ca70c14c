import { Command, CommanderError } from 'commander'
import { DscError } from '../failure/dsc-error.js'
import type { LogLevel } from '../log/log.js'
import { writeAll } from '../platform/standard-streams.js'
import { describeOption } from './arguments/describe-option.js'
import type { CliContext } from './context.js'

/** A verb of `dsc`. Its module is loaded only when the verb is called, so that a warm `prepare` stays fast. */
interface Verb {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<(context: CliContext) => Command>
}

const VERBS: readonly Verb[] = [
  {
    name: 'init',
    summary: 'write a commented dsc.yaml for this machine',
    load: async () => (await import('./commands/init.js')).initCommand,
  },
  {
    name: 'prepare',
    summary: 'download a dataset if needed, lease it, print its path',
    load: async () => (await import('./commands/prepare.js')).prepareCommand,
  },
  {
    name: 'run',
    summary: 'prepare datasets, run a command, release them when it exits',
    load: async () => (await import('./commands/run.js')).runCommand,
  },
  {
    name: 'release',
    summary: 'end a lease',
    load: async () => (await import('./commands/release.js')).releaseCommand,
  },
  {
    name: 'dataset',
    summary: 'add, list and remove dataset names',
    load: async () => (await import('./commands/dataset.js')).datasetCommand,
  },
  {
    name: 'lock',
    summary: 'never evict a dataset on this node',
    load: async () => (await import('./commands/lock.js')).lockCommand,
  },
  {
    name: 'unlock',
    summary: 'remove the lock of a dataset on this node',
    load: async () => (await import('./commands/lock.js')).unlockCommand,
  },
  {
    name: 'evict',
    summary: 'delete idle copies on this node',
    load: async () => (await import('./commands/evict.js')).evictCommand,
  },
  {
    name: 'cleanup',
    summary: 'end dead leases, remove abandoned downloads, enforce limits',
    load: async () => (await import('./commands/cleanup.js')).cleanupCommand,
  },
  {
    name: 'verify',
    summary: 'check copies against their checksums, and repair them',
    load: async () => (await import('./commands/verify.js')).verifyCommand,
  },
  {
    name: 'repair',
    summary: 'download the lost stripes of a dataset again',
    load: async () => (await import('./commands/repair.js')).repairCommand,
  },
  {
    name: 'adopt',
    summary: 'take over folders that are on disk',
    load: async () => (await import('./commands/adopt.js')).adoptCommand,
  },
  {
    name: 'agent',
    summary: 'share copies with other nodes and S3 clients',
    load: async () => (await import('./commands/agent.js')).agentCommand,
  },
  {
    name: 'gateway',
    summary: 'make keys for S3 clients of the agents',
    load: async () => (await import('./commands/gateway.js')).gatewayCommand,
  },
  {
    name: 'hint',
    summary: 'list nodes that have a dataset',
    load: async () => (await import('./commands/hint.js')).hintCommand,
  },
  {
    name: 'record',
    summary: 'move the record, claim or forget a node',
    load: async () => (await import('./commands/record.js')).recordCommand,
  },
  {
    name: 'config',
    summary: 'show every setting, and where it comes from',
    load: async () => (await import('./commands/config.js')).configCommand,
  },
  {
    name: 'doctor',
    summary: 'check this machine, its configuration and its sources',
    load: async () => (await import('./commands/doctor.js')).doctorCommand,
  },
  {
    name: 'bench',
    summary: 'measure disk, source and record, and name the slow one',
    load: async () => (await import('./commands/bench.js')).benchCommand,
  },
  {
    name: 'self',
    summary: 'show version and install location',
    load: async () => (await import('./commands/self.js')).selfCommand,
  },
  {
    name: 'completion',
    summary: 'print a completion script',
    load: async () => {
      const { completionCommand } = await import('./commands/completion.js')
      return (context) => completionCommand(context, () => loadProgram(context))
    },
  },
  {
    name: 'status',
    summary: 'show nodes, copies, leases and downloads, live',
    load: async () => (await import('./commands/status.js')).statusCommand,
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
    name: 'report',
    summary: 'show what the cache saved, who waited, and what to change',
    load: async () => (await import('./commands/report.js')).reportCommand,
  },
  {
    name: 'receipt',
    summary: 'print the data versions that a job used, as Croissant',
    load: async () => (await import('./commands/receipt.js')).receiptCommand,
  },
  {
    name: 'why',
    summary: 'explain why a dataset is here, was evicted or was refused',
    load: async () => (await import('./commands/why.js')).whyCommand,
  },
  {
    name: 'exchange',
    summary: 'exchange gradients between ranks (experimental)',
    load: async () => (await import('./commands/exchange.js')).exchangeCommand,
  },
  {
    name: 'feed',
    summary: 'feed shuffled samples to PyTorch',
    load: async () => (await import('./commands/feed.js')).feedCommand,
  },
  {
    name: 'memory',
    summary: 'plan GPU and host memory (experimental)',
    load: async () => (await import('./commands/memory.js')).memoryCommand,
  },
  {
    name: 'params',
    summary: 'serve model parameters (experimental)',
    load: async () => (await import('./commands/params.js')).paramsCommand,
  },
]

/** Options allowed before or after any verb. */
export interface GlobalOptions {
  readonly isJson: boolean
  readonly isQuiet: boolean
  readonly configPath: string | undefined
  readonly logLevel: LogLevel | undefined
  readonly logPath: string | undefined
}

/** Reads the global options anywhere in `argv`; commander reads them again along with the verb's own. */
export function readGlobalOptions(argv: readonly string[]): GlobalOptions {
  return {
    isJson: argv.includes('--json') || argv.includes('--ndjson'),
    isQuiet: argv.includes('--quiet') || argv.includes('-q'),
    configPath: findValue(argv, '--config'),
    logLevel: argv.includes('--debug') ? 'debug' : argv.includes('--verbose') ? 'verbose' : undefined,
    logPath: findValue(argv, '--log-file'),
  }
}

function findValue(argv: readonly string[], flag: string): string | undefined {
  const at = argv.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  const word = argv[at]
  return word?.includes('=') ? word.slice(flag.length + 1) : word && argv[at + 1]
}

/** The verb in `argv`: its first word that is neither an option nor the value of one before a verb. */
export function findVerb(argv: readonly string[]): string | undefined {
  const word = argv.find((each, at) => !each.startsWith('-') && !VALUE_FLAGS.includes(argv[at - 1] ?? ''))
  return VERBS.find(({ name }) => name === word)?.name
}

/** Verbs that ask the node's service where there is one; the others are for the owner of a cache. */
const AT_DOOR = /^(prepare|run|release|dataset|lock|unlock|evict|status|leases|history|report|why|doctor)$/

/** Whether the verb in `argv` asks the node's service, if there is one. */
export function goesThroughDoor(argv: readonly string[]): boolean {
  return AT_DOOR.test(findVerb(argv) ?? '')
}

/** Global options that take the next word as their value. */
const VALUE_FLAGS = ['--config', '--log-file']

/** Runs the verb in `argv` (without node and script). Rejects as the verb does. */
export async function runProgram(argv: readonly string[], context: CliContext): Promise<void> {
  const [first, ...words] = argv
  if (first === 'help') {
    const isKnown = words.length === 0 || findVerb(words) !== undefined
    return runProgram(isKnown ? [...words, '--help'] : words, context)
  }
  const program = createProgram('dsc', context.version)
  const asked = findVerb(argv)
  const isVersionAsked = argv.includes('--version') || argv.includes('-V')
  if (asked === undefined && isVersionAsked && context.report.isJson) {
    return runProgram(['self', '--json'], context)
  }
  for (const verb of VERBS) {
    if (verb.name === asked) program.addCommand(withGlobalOptions((await verb.load())(context)))
    else
      program.addCommand(
        new Command(verb.name).description(verb.summary).allowUnknownOption().allowExcessArguments(),
      )
  }
  try {
    await program.parseAsync([...argv], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return
    const path = describePath(program, argv)
    const isNothingAsked = error.code === 'commander.help'
    const message = isNothingAsked
      ? `expected a command after ${path}, found none`
      : error.message.replace(/^error: /, '')
    throw new DscError('USAGE', message, { hint: `${path} --help` })
  }
}

/** The path of the command that is asked for, such as `dsc dataset add`: as many words as name commands. */
function describePath(program: Command, argv: readonly string[]): string {
  let command = program
  const path = [program.name()]
  for (const word of argv) {
    const child = command.commands.find((candidate) => candidate.name() === word)
    if (child === undefined) continue
    command = child
    path.push(word)
  }
  return path.join(' ')
}

/** The whole tree with every verb's own options, for completion and tests: it is slow to load. */
export async function loadProgram(context: CliContext): Promise<Command> {
  const program = createProgram('dsc', '')
  for (const verb of VERBS) program.addCommand(withGlobalOptions((await verb.load())(context)))
  return program
}

function createProgram(name: string, version: string): Command {
  const program = new Command(name)
    .description('Keeps training data where the job needs it: stages datasets onto node disks, under quotas.')
    .version(version, '-V, --version', 'print the version')
    .showSuggestionAfterError()
    .addHelpText(
      'after',
      '\nExamples:\n  dsc prepare flowers            stage a dataset, print its path\n  dsc run flowers -- python train.py\n  dsc status                     look at the cache\n\nExit codes: dsc doctor --exit-codes',
    )
  return withGlobalOptions(program)
}

function withGlobalOptions(command: Command): Command {
  command
    .option('--config <file>', 'configuration file (default: the nearest dsc.yaml)')
    .option('--json', 'print the result as JSON')
    .option('-q, --quiet', 'print only errors on stderr')
    .option('--verbose', 'log requests, retries and timings to stderr')
    .option('--debug', 'as --verbose, and every SQL statement')
    .option('--log-file <file>', 'write log, notes and errors to this file')
    .exitOverride()
    .configureHelp({ optionDescription: describeOption })
    .configureOutput({ outputError: () => {}, writeOut: (text) => writeAll('stdout', text) })
  for (const child of command.commands) withGlobalOptions(child)
  return command
}
