import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hubDirectory } from '../../cache/cache-layout.js'
import { nameHubFolder } from '../../cache/download/hub-layout.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { findHubUrl, type HubUrl } from '../../model/source-url.js'

/** Throws USAGE unless the dataset is a repository of a Hugging Face hub. */
export function requireRepository(dataset: Dataset): HubUrl {
  const url = findHubUrl(dataset.source)
  if (url) return url
  throw new DscError('USAGE', `--hf is for repositories of a hub; ${dataset.name} is ${dataset.source}`, {
    hint: 'leave --hf out: the path that dsc prepare prints can be read as it is',
  })
}

/** The cache of the hub's own clients with these copies in it, until `close`. */
export interface HubCache {
  readonly variables: Readonly<Record<string, string>>
  close(): void
}

/**
 * Puts the repositories among prepared copies where the hub's own clients look (HF_HUB_CACHE), and keeps these from
 * asking the hub for what is there (HF_HUB_OFFLINE, unless the caller has set it).
 */
export function openHubCache(
  copies: readonly Pick<Copy, 'source' | 'directory'>[],
  environment: Readonly<Record<string, string | undefined>>,
): HubCache {
  const repositories = copies.flatMap(({ source, directory }) => {
    const url = source === null ? undefined : findHubUrl(source.source)
    return url ? [{ url, hub: hubDirectory(directory) }] : []
  })
  const [first, ...more] = repositories
  if (first === undefined) return { variables: {}, close() {} }
  const offline = environment.HF_HUB_OFFLINE === undefined ? { HF_HUB_OFFLINE: '1' } : {}
  if (more.length === 0) return { variables: { HF_HUB_CACHE: first.hub, ...offline }, close() {} }
  const folder = mkdtempSync(join(tmpdir(), 'dsc-hub-'))
  for (const { url, hub } of repositories) {
    const name = nameHubFolder(url)
    symlinkSync(join(hub, name), join(folder, name))
  }
  return {
    variables: { HF_HUB_CACHE: folder, ...offline },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}
