import { type Candidates, type CommandSpec, listValueFlags } from './command-spec.js'

/** Writes the completion script for fish 3. */
export function formatFishCompletion(commands: readonly CommandSpec[]): string {
  const below = commands.filter(({ path }) => path !== '').map(({ path }) => quote(path))
  const valueFlags = commands.flatMap((command) =>
    listValueFlags(command).map(({ flag }) => quote(`${command.path} ${flag}`)),
  )
  const lines = commands.flatMap((command) => {
    const at = `complete -c dsc -n ${quote(`__dsc_at '${command.path}'`)}`
    return [
      ...command.subcommands.map(({ name, summary }) => `${at} -a ${quote(name)} -d ${quote(summary)}`),
      ...(command.argument.kind === 'nothing' ? [] : [`${at} ${offer(command.argument)}`]),
      ...command.options.map(({ flags, summary, value }) => {
        const names = flags.map((flag) =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        )
        return `${at} ${names.join(' ')} -d ${quote(summary)}${value ? ` -r ${offer(value)}` : ''}`
      }),
    ]
  })
  return `# fish completion for dsc. Put this into ~/.config/fish/config.fish:  dsc completion fish | source
function __dsc_path
  set -l place ''
  set -l isValue 0
  for word in (commandline -opc)[2..]
    if test $isValue = 1
      set isValue 0
      continue
    end
    if test "$word" = --
      echo command
      return
    end
    switch "$place $word"
      case ${valueFlags.join(' ')}
        set isValue 1
        continue
    end
    switch "$place/$word"
      case ${below.join(' ')}
        set place "$place/$word"
    end
  end
  echo $place
end
function __dsc_at
  test (__dsc_path) = "$argv[1]"
end
complete -c dsc -f
complete -c dsc -n "__dsc_at command" -F
${lines.join('\n')}`
}

function offer(candidates: Candidates): string {
  switch (candidates.kind) {
    case 'listed':
      return `-f -a '(dsc completion --list ${candidates.what} 2>/dev/null)'`
    case 'choice':
      return `-f -a ${quote(candidates.choices.join(' '))}`
    case 'file':
      return '-F'
    case 'folder':
      return "-f -a '(__fish_complete_directories (commandline -ct))'"
    case 'nothing':
      return '-f'
  }
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
