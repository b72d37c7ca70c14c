import { Command, CommanderError, type CommandUnknownOpts, type Option } from 'commander'
import { DscError } from '../failure/dsc-error.js'
import { writeAll } from '../platform/standard-streams.js'
import type { CliContext } from './context.js'
import { formatGlobalOptions, GLOBAL_OPTIONS, hasOnlyGlobalOptions } from './global-options.js'
import { hideQuietOptions } from './quiet-options.js'
import { findVerb, readVerbWords, rejectUnknownVerb, VIEWS } from './verb-words.js'
import { VERBS, type Verb } from './verbs.js'

/** Whether help lists the options for tests, tuning and papers, too. */
interface Help {
  readonly showsQuiet: boolean
}

/** Verbs that ask the node's service where there is one; the others are for the owner of a cache. */
const AT_DOOR =
  /^(prepare|run|release|dataset|lock|unlock|evict|undo|verify|cleanup|adopt|repair|bench|status|leases|history|report|receipt|why|hint|doctor|feed)$/

/** Options with which `dsc cleanup` only prints. */
const ONLY_PRINTS = ['--print-cron', '--print-systemd']

/** Whether the verb in `argv` asks the node's service, if there is one. */
export function goesThroughDoor(argv: readonly string[]): boolean {
  const verb = findVerb(argv) ?? ''
  if (verb === 'cleanup' && argv.some((word) => ONLY_PRINTS.includes(word))) return false
  return AT_DOOR.test(verb)
}

/** Runs the verb in `argv` (without node and script). Rejects as the verb does. */
export async function runProgram(
  argv: readonly string[],
  context: CliContext,
  help: Help = { showsQuiet: false },
): Promise<void> {
  const [first, ...words] = argv
  if (first === 'help') {
    if (words[0] === 'options') return writeAll('stdout', formatGlobalOptions())
    if (words[0] === 'exit-codes') return runProgram(['doctor', '--exit-codes', ...words.slice(1)], context)
    const named = words.filter((word) => word !== '--all')
    return runProgram([...readVerbWords(named).argv, '--help'], context, {
      showsQuiet: named.length < words.length,
    })
  }
  const asked = findVerb(argv)
  const isVersionAsked = argv.includes('--version') || argv.includes('-V')
  if (asked === undefined && isVersionAsked && context.report.isJson) {
    return runProgram(['self', '--json'], context)
  }
  rejectUnknownVerb(argv)
  const program = createProgram(context.version)
  for (const verb of VERBS)
    addVerb(program, verb, verb.name === asked ? await loadVerb(verb, context, help) : undefined)
  if (asked === undefined && hasOnlyGlobalOptions(argv)) return program.outputHelp()
  try {
    await program.parseAsync([...argv], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return
    const path = describePath(program, argv)
    const message =
      error.code === 'commander.help'
        ? `expected a command after ${path}, found none`
        : error.message.replace(/^error: /, '')
    throw new DscError('USAGE', message, { hint: `${path} --help` })
  }
}

/** The path of the command that is asked for, such as `dsc dataset add`: as many words as name commands. */
function describePath(program: CommandUnknownOpts, argv: readonly string[]): string {
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
export async function loadProgram(
  context: CliContext,
  help: Help = { showsQuiet: false },
): Promise<CommandUnknownOpts> {
  const program = createProgram('')
  for (const verb of VERBS) addVerb(program, verb, await loadVerb(verb, context, help))
  return program
}

/** A verb with its options and those that lead to its views. */
async function loadVerb(verb: Verb, context: CliContext, { showsQuiet }: Help): Promise<CommandUnknownOpts> {
  const command = (await verb.load())(context, () => loadProgram(context))
  if (command.description() === '') command.description(verb.summary)
  for (const view of VIEWS)
    if (view.verb === verb.name) command.option(view.option, `${view.summary} (takes options of its own)`)
  if (!showsQuiet) hideQuietOptions(command)
  return withGlobalOptions(command)
}

/** Adds a verb to the list; without `loaded`, only its name and summary. */
function addVerb(
  program: CommandUnknownOpts,
  { name, summary, group }: Verb,
  loaded: CommandUnknownOpts | undefined,
): void {
  const command = loaded ?? new Command(name).description(summary).allowUnknownOption().allowExcessArguments()
  if (group !== undefined) command.helpGroup(group)
  program.addCommand(command, { hidden: group === undefined })
}

function createProgram(version: string): Command {
  const program = new Command('dsc')
    .description('dsc caches training data on the disks of GPU nodes.')
    .usage('<command> [options]')
    .version(version, '-V, --version', 'print the version')
    .helpCommand(false)
    .addHelpText('after', '\nExamples:\n  dsc prepare hf://datasets/org/name\n  dsc status')
    .addHelpText(
      'afterAll',
      '\nEvery command takes --json, --quiet, --verbose and --config: dsc help options',
    )
  withGlobalOptions(program)
  return program.configureHelp({ ...HELP, subcommandTerm: (command) => command.name() })
}

const HELP = { optionDescription: describeOption, visibleOptions: listOwnOptions }

function withGlobalOptions(command: CommandUnknownOpts) {
  for (const [flags, effect] of GLOBAL_OPTIONS) command.option(flags, effect)
  command
    .exitOverride()
    .configureHelp(HELP)
    .configureOutput({ outputError: () => {}, writeOut: (text) => writeAll('stdout', text) })
  for (const child of command.commands) withGlobalOptions(child)
  return command
}

/** The options that a command's help lists: not those of every command, which `dsc help options` tells once. */
function listOwnOptions({ options }: CommandUnknownOpts): Option[] {
  return options.filter(
    ({ flags, hidden, long }) =>
      !hidden && long !== '--version' && !GLOBAL_OPTIONS.some(([shared]) => shared === flags),
  )
}

/** An option's text in help: its description, its choices, and its default as one would type it. */
export function describeOption(option: Option): string {
  const { description, argChoices, defaultValue, defaultValueDescription } = option
  const facts: string[] = []
  if (argChoices) facts.push(`choices: ${argChoices.join(', ')}`)
  // A switch is off unless given, so its default needs no words.
  if (defaultValue !== undefined && typeof defaultValue !== 'boolean') {
    facts.push(`default: ${defaultValueDescription ?? String(defaultValue)}`)
  } else if (defaultValueDescription !== undefined) facts.push(`default: ${defaultValueDescription}`)
  return facts.length === 0 ? description : `${description} (${facts.join(', ')})`
}
