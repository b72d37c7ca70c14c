import { type Candidates, type CommandSpec, listValueFlags } from './command-spec.js'

/** Writes the completion script for zsh 5, to be sourced or saved in a folder of $fpath as `_dsc`. */
export function formatZshCompletion(commands: readonly CommandSpec[]): string {
  const below = commands.filter(({ path }) => path !== '').map(({ path }) => quote(path))
  const valueFlags = commands.flatMap((command) =>
    listValueFlags(command).map(({ flag, value }) => ({ pattern: quote(`${command.path} ${flag}`), value })),
  )
  const offers = commands.map((command) => {
    const options = command.options.flatMap(({ flags, summary }) =>
      flags.map((flag) => describe(flag, summary)),
    )
    const names = command.subcommands.map(({ name, summary }) => describe(name, summary))
    return `    ${quote(command.path)})
      if [[ $current == -* ]]; then
        offered=(${options.join(' ')})
        _describe -o option offered
      else
        ${names.length > 0 ? `offered=(${names.join(' ')})\n        _describe command offered` : offer(command.argument)}
      fi ;;`
  })
  return `#compdef dsc
# zsh completion for dsc. Put this into ~/.zshrc, after compinit:  eval "$(dsc completion zsh)"
_dsc() {
  local current=\${words[CURRENT]} place= word= flag= i
  local -a offered
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $flag ]]; then flag=; continue; fi
    if [[ $word == -- ]]; then _files; return; fi
    case "$place $word" in
      ${valueFlags.length > 0 ? `${valueFlags.map(({ pattern }) => pattern).join(' | ')}) flag="$place $word"; continue ;;` : ''}
    esac
    case "$place/$word" in
      ${below.join(' | ')}) place=$place/$word ;;
    esac
  done
  if [[ -n $flag ]]; then
    case $flag in
${valueFlags.map(({ pattern, value }) => `      ${pattern}) ${offer(value)} ;;`).join('\n')}
    esac
    return
  fi
  case $place in
${offers.join('\n')}
  esac
}
if [[ $funcstack[1] == _dsc ]]; then _dsc "$@"; else compdef _dsc dsc; fi`
}

function offer(candidates: Candidates): string {
  switch (candidates.kind) {
    case 'listed':
      return `offered=(\${(f)"$(dsc completion --list ${candidates.what} 2>/dev/null)"}); compadd -a offered`
    case 'choice':
      return `compadd -- ${candidates.choices.map(quote).join(' ')}`
    case 'file':
      return '_files'
    case 'folder':
      return '_files -/'
    case 'nothing':
      return 'return 1'
  }
}

function describe(name: string, summary: string): string {
  return quote(`${name.replaceAll(':', '\\:')}:${summary}`)
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
