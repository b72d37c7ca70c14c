import type { Argument, CommandUnknownOpts, Option } from 'commander'

/** The suggestions that a shell offers for a word. */
export type Candidates =
  | { readonly kind: 'nothing' | 'file' | 'folder' }
  /** The output of `dsc completion --list <what>`. */
  | { readonly kind: 'listed'; readonly what: Listed }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }

/** The kinds of names that completion asks dsc for. */
export const LISTED = ['datasets', 'nodes', 'tasks', 'leases'] as const
/** One of those kinds. */
export type Listed = (typeof LISTED)[number]

/** An option as completion needs it. */
interface OptionSpec {
  /** With their dashes: `-q`, `--quiet`. */
  readonly flags: readonly string[]
  readonly summary: string
  /** Suggestions for its value; undefined: it takes none. */
  readonly value: Candidates | undefined
}

/** A command as completion needs it. */
export interface CommandSpec {
  /** Empty for dsc itself, else `/prepare`, `/dataset/add`. */
  readonly path: string
  readonly summary: string
  readonly options: readonly OptionSpec[]
  /** Suggestions for its arguments; the last applies to all that follow. */
  readonly argument: Candidates
  readonly subcommands: readonly { readonly name: string; readonly summary: string }[]
}

/** Describes a command and everything below it, from commander's data. */
export function describeCommands(command: CommandUnknownOpts, path = ''): CommandSpec[] {
  const { commands } = command
  return [
    {
      path,
      summary: firstSentence(command.description()),
      options: [
        ...command.options.filter((option) => !option.hidden).map(describeOption),
        { flags: ['-h', '--help'], summary: 'display help', value: undefined },
      ],
      argument: candidatesOf(command.registeredArguments[0]),
      subcommands: commands.map((child) => ({
        name: child.name(),
        summary: firstSentence(child.description()),
      })),
    },
    ...commands.flatMap((child) => describeCommands(child, `${path}/${child.name()}`)),
  ]
}

function describeOption(option: Option): OptionSpec {
  const takesValue = option.required || option.optional
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined && flag !== null),
    summary: firstSentence(option.description),
    value: takesValue ? candidatesFor(placeholderOf(option.flags), option.argChoices) : undefined,
  }
}

function candidatesOf(argument: Argument | undefined): Candidates {
  return argument ? candidatesFor(argument.name(), argument.argChoices) : { kind: 'nothing' }
}

/** Derives suggestions from a placeholder's name, as in help texts: `<dataset>`, `<file>`, `<dir>`. */
function candidatesFor(placeholder: string, choices: readonly string[] | undefined): Candidates {
  if (choices) return { kind: 'choice', choices }
  const what = LISTED.find((listed) => placeholder === listed || placeholder === listed.slice(0, -1))
  if (what || placeholder === 'dataset...' || placeholder === 'datasets...')
    return { kind: 'listed', what: what ?? 'datasets' }
  if (/^(dir|folder|directory)\b/.test(placeholder)) return { kind: 'folder' }
  if (/^(file|path|profile\.json)\b/.test(placeholder)) return { kind: 'file' }
  return { kind: 'nothing' }
}

function placeholderOf(flags: string): string {
  return /[<[]([^\]>]+)[\]>]/.exec(flags)?.[1] ?? ''
}

function firstSentence(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[.:;] .*$/, '')
}

/** A command's flags that take the next word as their value. */
export function listValueFlags({ options }: CommandSpec): readonly { flag: string; value: Candidates }[] {
  return options.flatMap(({ flags, value }) => (value ? flags.map((flag) => ({ flag, value })) : []))
}
