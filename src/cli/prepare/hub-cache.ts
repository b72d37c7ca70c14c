import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hubDirectory } from '../../cache/cache-layout.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { findHubUrl, type HubUrl, nameHubFolder } from '../../model/source-url.js'

/** Throws USAGE unless the dataset is a repository of a Hugging Face hub. */
export function requireRepository(dataset: Dataset): HubUrl {
  const url = findHubUrl(dataset.source)
  if (url) return url
  throw new DscError('USAGE', `--hf is for repositories of a hub; ${dataset.name} is ${dataset.source}`, {
    hint: 'leave --hf out: the path that dsc prepare prints can be read as it is',
  })
}

/** Lets the hub's own clients find these copies, until `close`. */
export interface HubView {
  readonly variables: Readonly<Record<string, string>>
  close(): void
}

const NOTHING: HubView = { variables: {}, close() {} }

/**
 * Puts the repositories among prepared copies where the hub's own clients look (HF_HUB_CACHE). For models, the clients
 * then send no requests (HF_HUB_OFFLINE); for datasets they still ask a hub, and get one that has only these copies
 * (HF_ENDPOINT). Does neither if the caller has set HF_HUB_OFFLINE.
 */
export async function openHubView(
  root: string,
  copies: readonly Copy[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<HubView> {
  const repositories = copies.filter(({ source }) => source !== null && findHubUrl(source.source))
  const [first] = repositories
  if (first === undefined) return NOTHING
  const cache =
    repositories.length === 1
      ? { variables: { HF_HUB_CACHE: hubDirectory(first.directory) }, close() {} }
      : joinHubCaches(repositories)
  if (environment.HF_HUB_OFFLINE !== undefined) return cache
  if (repositories.every(({ source }) => findHubUrl(source!.source)!.kind === 'models'))
    return { ...cache, variables: { ...cache.variables, HF_HUB_OFFLINE: '1' } }
  const { LocalHub } = await import('../../agent/gateway/local-hub.js')
  const hub = await LocalHub.open(root, repositories)
  return {
    variables: { ...cache.variables, HF_ENDPOINT: hub.endpoint },
    close: () => {
      hub.close()
      cache.close()
    },
  }
}

/** One folder that leads to the caches of several copies. */
function joinHubCaches(copies: readonly Copy[]): HubView {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-hub-'))
  for (const { source, directory } of copies) {
    const name = nameHubFolder(findHubUrl(source!.source)!)
    symlinkSync(join(hubDirectory(directory), name), join(folder, name))
  }
  return {
    variables: { HF_HUB_CACHE: folder },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}
