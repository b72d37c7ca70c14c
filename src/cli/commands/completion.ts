import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Argument, Command, type CommandUnknownOpts, Option } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { formatBashCompletion } from '../completion/bash.js'
import { describeCommands, LISTED, type Listed } from '../completion/command-spec.js'
import { formatFishCompletion } from '../completion/fish.js'
import { formatZshCompletion } from '../completion/zsh.js'
import type { CliContext } from '../context.js'
import { writeWhole } from '../output/write-whole.js'

const SHELLS = { bash: formatBashCompletion, zsh: formatZshCompletion, fish: formatFishCompletion } as const

type Shell = keyof typeof SHELLS
const NAMES = ['bash', 'zsh', 'fish'] as const

/** `dsc completion`: prints or installs the script with which a shell completes `dsc`. `loadProgram` loads every verb. */
export function completionCommand(context: CliContext, loadProgram: () => Promise<CommandUnknownOpts>) {
  return new Command('completion')
    .addArgument(
      new Argument('[what]', 'the shell whose script to print, or install').choices([...NAMES, 'install']),
    )
    .addArgument(new Argument('[shell]', 'with install: the shell (default: $SHELL)').choices(NAMES))
    .addOption(new Option('--list <what>', 'for the scripts: print these, one per line').choices(LISTED))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc completion install\n  eval "$(dsc completion bash)"      in ~/.bashrc\n  eval "$(dsc completion zsh)"       in ~/.zshrc, after compinit\n  dsc completion fish | source       in ~/.config/fish/config.fish',
    )
    .action(async (what, given, options) => {
      if (options.list) {
        const names = await listNames(context, options.list)
        context.report.result<'completion --list'>({ names }, () => names.join('\n'))
        return
      }
      const write = async (shell: Shell) => SHELLS[shell](describeCommands(await loadProgram()))
      if (what === 'install') return install(context, given ?? findShell(context), write)
      if (what === undefined || given !== undefined)
        throw new DscError('USAGE', `expected one shell, found ${what === undefined ? 'none' : 'two'}`, {
          hint: 'dsc completion bash|zsh|fish',
        })
      const script = await write(what)
      context.report.result<'completion'>({ shell: what, script }, () => script)
    })
}

/** Writes the script to where the user's shell looks for it; a second time, what a newer dsc knows. */
async function install(
  { report, environment }: CliContext,
  shell: Shell,
  write: (shell: Shell) => Promise<string>,
): Promise<void> {
  const home = findHomeDirectory()
  const { path, next } = placeScript(shell, {
    data: environment.XDG_DATA_HOME || join(home, '.local/share'),
    config: environment.XDG_CONFIG_HOME || join(home, '.config'),
  })
  await writeWhole(path, await write(shell), `dsc completion ${shell} prints it, for another place`)
  report.result<'completion install'>({ shell, path }, () => path)
  report.note(next)
}

function findShell({ environment }: CliContext): Shell {
  const name = basename(environment.SHELL ?? '')
  if (Object.hasOwn(SHELLS, name)) return name as Shell
  throw new DscError('USAGE', `expected bash, zsh or fish in $SHELL, found ${name || 'none'}`, {
    hint: 'dsc completion install bash|zsh|fish',
  })
}

/** Names in dsc.yaml and in the record, sorted. Must not create a record. */
async function listNames({ config: loadConfig, openRecord }: CliContext, what: Listed): Promise<string[]> {
  const { datasets, record } = await loadConfig()
  const isThere = record.kind === 'postgres' || existsSync(record.path)
  const known = isThere ? await listKnown(await openRecord(), what) : []
  const declared = what === 'datasets' ? datasets.map(({ name }) => name) : []
  return [...new Set([...declared, ...known])].toSorted()
}

async function listKnown(record: RecordStore, what: Listed): Promise<readonly string[]> {
  if (what === 'datasets') return (await record.listDatasets()).map(({ name }) => name)
  if (what === 'nodes') return (await record.listNodes()).map(({ node }) => node)
  const uses = (await record.listLeases({})).filter(({ purpose }) => purpose === 'use')
  return uses.map(({ task, leaseId }) => (what === 'tasks' ? task : leaseId))
}

/** Folders of a user, as the XDG specification names them. */
interface UserFolders {
  readonly data: string
  readonly config: string
}

/** The file in which a shell looks for the completions of dsc by itself, and what else a user has to do, if anything. */
function placeScript(
  shell: 'bash' | 'zsh' | 'fish',
  { data, config }: UserFolders,
): { readonly path: string; readonly next: string } {
  switch (shell) {
    case 'bash':
      return {
        path: join(data, 'bash-completion/completions/dsc'),
        next: 'a new shell completes dsc, if the package bash-completion is installed',
      }
    case 'zsh': {
      const folder = join(data, 'zsh/site-functions')
      return {
        path: join(folder, '_dsc'),
        next: `put this into ~/.zshrc, before compinit: fpath+=('${folder}')`,
      }
    }
    case 'fish':
      return { path: join(config, 'fish/completions/dsc.fish'), next: 'a new shell completes dsc' }
  }
}
