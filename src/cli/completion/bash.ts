import { type Candidates, type CommandSpec, listValueFlags } from './command-spec.js'

/** Writes the completion script for bash 4.2 and newer. */
export function formatBashCompletion(commands: readonly CommandSpec[]): string {
  const below = commands.filter(({ path }) => path !== '').map(({ path }) => quote(path))
  const valueFlags = commands.flatMap((command) =>
    listValueFlags(command).map(({ flag, value }) => ({ pattern: quote(`${command.path} ${flag}`), value })),
  )
  const offers = commands.map((command) => {
    const flags = command.options.flatMap((option) => option.flags).filter((flag) => flag.startsWith('--'))
    const names = command.subcommands.map(({ name }) => name)
    return `    ${quote(command.path)})
      if [[ $current == -* ]]; then offered=${quote(flags.join(' '))}
      else ${names.length > 0 ? `offered=${quote(names.join(' '))}` : offer(command.argument)}; fi ;;`
  })
  return `# bash completion for dsc. Put this into ~/.bashrc:  eval "$(dsc completion bash)"
_dsc() {
  local current=\${COMP_WORDS[COMP_CWORD]} path= word= offered= flag= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash takes --flag=value apart at the sign.
    if [[ $word == = ]]; then continue; fi
    if [[ -n $flag ]]; then flag=; continue; fi
    if [[ $word == -- ]]; then compopt -o default; return; fi
    case "$path $word" in
      ${valueFlags.length > 0 ? `${valueFlags.map(({ pattern }) => pattern).join(' | ')}) flag="$path $word"; continue ;;` : ''}
    esac
    case "$path/$word" in
      ${below.join(' | ')}) path=$path/$word ;;
    esac
  done
  if [[ $current == = ]]; then current=; fi
  if [[ -n $flag ]]; then
    case $flag in
${valueFlags.map(({ pattern, value }) => `      ${pattern}) ${offer(value)} ;;`).join('\n')}
    esac
  else
    case $path in
${offers.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -F _dsc dsc`
}

function offer(candidates: Candidates): string {
  switch (candidates.kind) {
    case 'listed':
      return `offered=$(dsc completion --list ${candidates.what} 2>/dev/null)`
    case 'choice':
      return `offered=${quote(candidates.choices.join(' '))}`
    case 'file':
      return 'compopt -o default; return'
    case 'folder':
      return 'compopt -o dirnames; return'
    case 'nothing':
      return 'return'
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
