import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DscError } from '../failure/dsc-error.js'

/**
 * The configuration file that counts, or undefined when there is none. In this order: `explicitPath`
 * (--config), $DSC_CONFIG, dsc.yaml in the working folder and its parents, $XDG_CONFIG_HOME/dsc/dsc.yaml,
 * /etc/dsc/dsc.yaml. A file that is named but missing is an error: the next one would surprise.
 */
export function findConfigFile(options: {
  explicitPath: string | undefined
  environment: Readonly<Record<string, string | undefined>>
  workingDirectory: string
  homeDirectory: string
}): string | undefined {
  const { explicitPath, environment, workingDirectory, homeDirectory } = options
  for (const [named, by] of [
    [explicitPath, '--config'],
    [environment.DSC_CONFIG || undefined, 'DSC_CONFIG'],
  ] as const) {
    if (named === undefined) continue
    const path = resolve(workingDirectory, named)
    if (isFile(path)) return path
    throw new DscError('CONFIG_INVALID', `${by} names ${path}, expected a file, found none`, {
      hint: `dsc init --config ${path}`,
    })
  }
  const configHome = environment.XDG_CONFIG_HOME || join(homeDirectory, '.config')
  return [
    ...listParents(workingDirectory).map((folder) => join(folder, 'dsc.yaml')),
    join(configHome, 'dsc', 'dsc.yaml'),
    '/etc/dsc/dsc.yaml',
  ].find(isFile)
}

function listParents(folder: string): string[] {
  const parent = dirname(folder)
  return parent === folder ? [folder] : [folder, ...listParents(parent)]
}

function isFile(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found !== undefined && !found.isDirectory()
  } catch (error) {
    // A parent that may not be read cannot hold the file that counts, nor can a name that leads nowhere.
    const { code = '' } = error as NodeJS.ErrnoException
    if (['EACCES', 'ELOOP', 'ENAMETOOLONG'].includes(code)) return false
    throw error
  }
}
