import { Command, CommanderError } from 'commander'
import { DscError } from '../failure/dsc-error.js'
import type { CliContext } from './context.js'

/** A verb of `dsc`. Its module is loaded only when the verb is called, so that a warm `prepare` stays quick. */
interface Verb {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<(context: CliContext) => Command>
}

const VERBS: readonly Verb[] = [
  {
    name: 'memory',
    summary: 'plan what moves between device and host memory',
    load: async () => (await import('./commands/memory.js')).memoryCommand,
  },
  {
    name: 'params',
    summary: 'serve the parameters of a training job',
    load: async () => (await import('./commands/params.js')).paramsCommand,
  },
]

/** Options that stand before or after any verb. */
export interface GlobalOptions {
  readonly isJson: boolean
  readonly isQuiet: boolean
  readonly configPath: string | undefined
}

/** Reads the global options wherever they stand before a `--`; commander reads them again with the verb's own. */
export function readGlobalOptions(argv: readonly string[]): GlobalOptions {
  const end = argv.indexOf('--')
  const own = end === -1 ? argv : argv.slice(0, end)
  const configAt = own.findIndex((word) => word === '--config' || word.startsWith('--config='))
  const configWord = own[configAt]
  return {
    isJson: own.includes('--json'),
    isQuiet: own.includes('--quiet') || own.includes('-q'),
    configPath: configWord?.includes('=') ? configWord.slice('--config='.length) : own[configAt + 1],
  }
}

/** Runs the verb in `argv` (without node and script). Rejects with what the verb rejects with. */
export async function runProgram(
  argv: readonly string[],
  context: CliContext,
  version: string,
): Promise<void> {
  const program = createProgram('dsc', version)
  const asked = argv.find((word) => VERBS.some((verb) => verb.name === word))
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
    throw new DscError('USAGE', error.message.replace(/^error: /, ''), {
      hint: `dsc ${asked ? `${asked} ` : ''}--help`,
    })
  }
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
    .option('-q, --quiet', 'no progress and no notes on stderr')
    .exitOverride()
    .configureOutput({ outputError: () => {} })
  for (const child of command.commands) withGlobalOptions(child)
  return command
}
