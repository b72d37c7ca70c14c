import { chmodSync, lstatSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { unlessCode } from '../../failure/unless-code.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { Dataset } from '../../model/dataset.js'
import { findHubUrl, nameHubFolder } from '../../model/source-url.js'
import { onHeldPath } from '../../platform/held-path.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import { walkTree } from '../../platform/walk-tree.js'
import { hubDirectory } from '../cache-layout.js'

const READ_ONLY = 0o7555
const COMMIT = /^[0-9a-f]{40}$/

/**
 * Lays out the cache of the hub's own clients beside the files of a hub repository's copy, so that HF_HUB_CACHE can
 * point to it: `models--org--name/` with `refs/<revision>` (the commit), `snapshots/<commit>/<path>` and, behind these,
 * `blobs/<digest>`, links to the copy's files. It replaces an earlier one. Its folders are read-only, as a client that
 * is not offline would add other repositories and commits to them. Does nothing for copies of other sources. Source:
 * huggingface.co/docs/huggingface_hub/guides/manage-cache.
 */
export async function layHubCache(copyDirectory: string, manifest: Manifest): Promise<void> {
  const definition = manifest.readSetting('definition')
  const url = definition === undefined ? undefined : findHubUrl((JSON.parse(definition) as Dataset).source)
  if (url === undefined) return
  const hub = hubDirectory(copyDirectory)
  const [draft, old] = [`${hub}.new`, `${hub}.old`]
  for (const left of [draft, old]) await removeDirectory(left) // left by a killed attempt
  const repository = join(draft, nameHubFolder(url))
  let commit: string | undefined
  for (const page of manifest.pages('present')) {
    for (const { key, etag, versionId } of page) {
      if (etag === null || versionId === null || !COMMIT.test(versionId)) continue
      commit = versionId
      const blob = `blobs/${etag}`
      link(join(repository, blob), join('../../..', 'files', key))
      const snapshot = `snapshots/${commit}/${url.folder}${key}`
      link(join(repository, snapshot), relative(dirname(snapshot), blob))
    }
    await new Promise(setImmediate) // lets signals through
  }
  if (commit !== undefined && url.revision !== commit) write(join(repository, 'refs', url.revision), commit)
  if (commit === undefined) return removeDirectory(hub)
  await closeFolders(draft)
  if (rename(hub, old)) await removeDirectory(old)
  rename(draft, hub)
}

/** Takes write permission from everybody, so that clients of the hub put nothing beside what dsc downloaded. */
async function closeFolders(top: string): Promise<void> {
  const folders = [top]
  for await (const { path, kind } of walkTree(top)) if (kind === 'directory') folders.push(path)
  for (const folder of folders.reverse())
    onHeldPath(folder, (path) => chmodSync(path, lstatSync(path).mode & READ_ONLY))
}

/** False: `from` does not exist. */
function rename(from: string, to: string): boolean {
  try {
    onHeldPath(from, (source) => onHeldPath(to, (target) => renameSync(source, target)))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Several files may share one blob. */
function link(path: string, target: string): void {
  onHeldPath(path, (at) => unlessCode(['EEXIST'], () => symlinkSync(target, at)), { makesFolders: true })
}

function write(path: string, text: string): void {
  onHeldPath(path, (at) => writeFileSync(at, text, { flag: 'wx', mode: 0o444 }), { makesFolders: true })
}
