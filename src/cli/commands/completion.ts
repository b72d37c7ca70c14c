import { existsSync } from 'node:fs'
import { Argument, Command, Option } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { CompletionAnswer, NamesAnswer } from '../answers/cache-answers.js'
import { formatBashCompletion } from '../completion/bash.js'
import { describeCommands, LISTED, type Listed } from '../completion/command-spec.js'
import { formatFishCompletion } from '../completion/fish.js'
import { formatZshCompletion } from '../completion/zsh.js'
import type { CliContext } from '../context.js'

const SHELLS = { bash: formatBashCompletion, zsh: formatZshCompletion, fish: formatFishCompletion } as const

/** `dsc completion`: prints the script with which a shell completes `dsc`. `loadProgram` loads every verb. */
export function completionCommand(context: CliContext, loadProgram: () => Promise<Command>): Command {
  return new Command('completion')
    .description('print a completion script')
    .addArgument(new Argument('[shell]', 'the shell').choices(Object.keys(SHELLS)))
    .addOption(new Option('--list <what>', 'for the scripts: print these, one per line').choices(LISTED))
    .addHelpText(
      'after',
      '\nExamples:\n  eval "$(dsc completion bash)"      in ~/.bashrc\n  eval "$(dsc completion zsh)"       in ~/.zshrc, after compinit\n  dsc completion fish | source       in ~/.config/fish/config.fish',
    )
    .action(async (shell: keyof typeof SHELLS | undefined, options: { list?: Listed }) => {
      if (options.list) {
        const names = await listNames(context, options.list)
        const answer: NamesAnswer = { dsc: 1, names }
        context.report.result(answer, () => names.join('\n'))
        return
      }
      if (shell === undefined) {
        throw new DscError('USAGE', 'expected a shell, found none', { hint: 'dsc completion bash|zsh|fish' })
      }
      const script = SHELLS[shell](describeCommands(await loadProgram()))
      const answer: CompletionAnswer = { dsc: 1, shell, script }
      context.report.result(answer, () => script)
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
