import { createHash } from 'node:crypto'
import { formatManifestLine } from '../model/manifest.js'
import type { Manifest } from './manifest.js'

/** The version that a manifest's objects make. */
export function digestVersion(manifest: Manifest): string {
  const digest = createHash('sha256')
  for (const entry of manifest.entriesByKey()) digest.update(formatManifestLine(entry))
  return digest.digest('hex')
}
