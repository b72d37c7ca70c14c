import { existsSync } from 'node:fs'
import { Argument, Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatBashCompletion } from '../completion/bash.js'
import { describeCommands } from '../completion/command-spec.js'
import { formatFishCompletion } from '../completion/fish.js'
import { formatZshCompletion } from '../completion/zsh.js'
import type { CliContext } from '../context.js'

const SHELLS = { bash: formatBashCompletion, zsh: formatZshCompletion, fish: formatFishCompletion } as const

/** `dsc completion`: prints the script that lets a shell complete `dsc`. `loadProgram` loads every verb. */
export function completionCommand(context: CliContext, loadProgram: () => Promise<Command>): Command {
  return new Command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('[shell]', 'the shell').choices(Object.keys(SHELLS)))
    .option('--datasets', 'print the names of the datasets, one per line, as the scripts ask')
    .addHelpText(
      'after',
      '\nExamples:\n  eval "$(dsc completion bash)"      in ~/.bashrc\n  eval "$(dsc completion zsh)"       in ~/.zshrc, after compinit\n  dsc completion fish | source       in ~/.config/fish/config.fish',
    )
    .action(async (shell: keyof typeof SHELLS | undefined, options: { datasets?: true }) => {
      if (options.datasets) {
        const names = await listDatasetNames(context)
        context.report.result(names, () => names.join('\n'))
        return
      }
      if (shell === undefined) {
        throw new DscError('USAGE', 'expected a shell, found none', { hint: 'dsc completion bash|zsh|fish' })
      }
      const script = SHELLS[shell](describeCommands(await loadProgram()))
      context.report.result({ shell, script }, () => script)
    })
}

/** Names in dsc.yaml and in the record, sorted. Asking for names must not create a record. */
async function listDatasetNames({ config: loadConfig, openRecord }: CliContext): Promise<string[]> {
  const { datasets, record } = await loadConfig()
  const names = new Set(datasets.map(({ name }) => name))
  if (record.kind === 'postgres' || existsSync(record.path)) {
    const store = await openRecord()
    for (const { name } of await store.listDatasets()) names.add(name)
  }
  return [...names].toSorted()
}
