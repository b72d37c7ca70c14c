import { join } from 'node:path'

/** Folders of a user, as the XDG specification names them. */
interface UserFolders {
  readonly data: string
  readonly config: string
}

/** The file in which a shell looks for the completions of dsc by itself, and what else a user has to do, if anything. */
export function placeScript(
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
