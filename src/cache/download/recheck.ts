import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { Manifest } from '../../manifest/manifest.js'
import { readBootId } from '../../platform/boot-id.js'
import { checkObject } from '../../proof/check-object.js'
import { filesDirectory } from '../cache-layout.js'

/**
 * After a reboot, finished files that were never synced may have lost their bytes: checks them by digest and marks
 * damaged ones as not fetched. Does nothing while the system is still in the boot that wrote the files. Files without a
 * recorded boot are of an earlier one: a power loss takes the record of the last moments, but not their files.
 */
export async function recheckAfterReboot(
  manifest: Manifest,
  copyDirectory: string,
  options: { readonly signal: AbortSignal; readonly bootId?: string | undefined },
): Promise<{ readonly recheckedObjects: number; readonly lostObjects: number }> {
  const bootId = options.bootId ?? readBootId() ?? 'unknown'
  const before = manifest.readSetting('boot_id')
  const counts = { recheckedObjects: 0, lostObjects: 0 }
  if (before === undefined && holdsFiles(copyDirectory)) manifest.writeSetting('rebooted', '1')
  if (before !== undefined && (before !== bootId || bootId === 'unknown')) {
    manifest.blocks.drop() // they may never have reached the disk
    manifest.writeSetting('rebooted', '1')
    for (const entry of manifest.entries('begun')) {
      throwIfStopped(options.signal)
      const path = join(filesDirectory(copyDirectory), entry.key)
      const damage = await checkObject(
        path,
        { ...entry, digests: manifest.parts.digestsOf(entry) },
        options.signal,
      )
      counts.recheckedObjects += 1
      if (!damage) continue
      counts.lostObjects += 1
      manifest.forgetObject(entry.id, damage.parts)
    }
  }
  manifest.writeSetting('boot_id', bootId)
  return counts
}

/** Whether all bytes in unfinished files are of attempts in this boot. */
export function mayBelieveFiles(manifest: Manifest): boolean {
  return manifest.readSetting('rebooted') === undefined
}

function holdsFiles(copyDirectory: string): boolean {
  const files = filesDirectory(copyDirectory)
  return existsSync(files) && readdirSync(files).length > 0
}
