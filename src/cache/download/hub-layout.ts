import { symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Manifest } from '../../manifest/manifest.js'
import type { Dataset } from '../../model/dataset.js'
import { findHubUrl, nameHubFolder } from '../../model/source-url.js'
import { onHeldPath } from '../../platform/held-folder.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import { hubDirectory } from '../cache-layout.js'

const COMMIT = /^[0-9a-f]{40}$/

/**
 * Lays the cache of the hub's own clients beside the files of a repository's copy, so that HF_HUB_CACHE can point to
 * it: `models--org--name/` with `refs/<revision>` (the commit), `snapshots/<commit>/<path>` and, behind these,
 * `blobs/<digest>`, links to the copy's files. Does nothing for copies of other sources.
 * Source: huggingface.co/docs/huggingface_hub/guides/manage-cache.
 */
export async function layHubCache(copyDirectory: string, manifest: Manifest): Promise<void> {
  const definition = manifest.readSetting('definition')
  const url = definition === undefined ? undefined : findHubUrl((JSON.parse(definition) as Dataset).source)
  if (url === undefined) return
  const hub = hubDirectory(copyDirectory)
  await removeDirectory(hub) // of an attempt that was killed
  const repository = join(hub, nameHubFolder(url))
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
  if (commit === undefined || url.revision === commit) return
  write(join(repository, 'refs', url.revision), commit)
}

/** Several files may be one blob. */
function link(path: string, target: string): void {
  onHeldPath(
    path,
    (at) => {
      try {
        symlinkSync(target, at)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
    },
    { makesFolders: true },
  )
}

function write(path: string, text: string): void {
  onHeldPath(path, (at) => writeFileSync(at, text, { flag: 'wx', mode: 0o444 }), { makesFolders: true })
}
