import { type CopyManifest, readCopyManifest } from '../manifest/read-copy-manifest.js'
import { findHeld, namesBelow } from './held-cache.js'

/** Reads the manifest in a folder below the cache root; undefined: there is no readable one. */
export function readHeldManifest(root: string, directory: string): CopyManifest | undefined {
  using held = findHeld(root, namesBelow(root, directory))
  return held && readCopyManifest(held.path)
}
