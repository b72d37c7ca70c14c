import { join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Where the hub's own clients keep their downloads: HF_HUB_CACHE, else `hub` in HF_HOME. Source: huggingface_hub,
 * `constants.py`.
 */
export function findHubCache(environment: Environment, homeDirectory: string): string {
  return (
    environment.HF_HUB_CACHE ||
    environment.HUGGINGFACE_HUB_CACHE ||
    join(findHubHome(environment, homeDirectory), 'hub')
  )
}

/** The home folder of the hub's own clients. */
export function findHubHome(environment: Environment, homeDirectory: string): string {
  if (environment.HF_HOME) return environment.HF_HOME
  return join(environment.XDG_CACHE_HOME || join(homeDirectory, '.cache'), 'huggingface')
}
