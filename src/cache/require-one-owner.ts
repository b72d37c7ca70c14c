import { existsSync, readdirSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RecordLocation } from '../config/config.js'
import { DscError } from '../failure/dsc-error.js'
import { findOtherWriters } from '../platform/other-writers.js'
import { copiesDirectory, identityFile, stagingDirectory, trashDirectory } from './cache-layout.js'

const STICKY = 0o1000

/**
 * Throws CACHE_ROOT_INVALID if somebody besides the owner may write to the cache or its record: they could have jobs
 * read other bytes, or have dsc write elsewhere with the rights of its caller. A cache has one owner, a user or the node's
 * service, whom everybody else asks at the door.
 */
export function requireOneOwner(root: string, record: RecordLocation): void {
  const handOver = () => hintFor(root)
  for (const path of [root, copiesDirectory(root), stagingDirectory(root), trashDirectory(root)])
    requireOwnerAlone(path, handOver)
  if (record.kind !== 'sqlite') return
  const folder = dirname(record.path)
  const isInRoot = folder === root
  // In a folder such as /tmp, nobody replaces the file of another user.
  if (!isInRoot && !((look(folder)?.mode ?? 0) & STICKY))
    requireOwnerAlone(folder, () => 'set record: to a file in a folder that you alone may write to')
  requireOwnerAlone(record.path, isInRoot ? handOver : () => `chmod go-w ${record.path}`)
}

function requireOwnerAlone(path: string, hint: () => string): void {
  const found = look(path)
  if (found === undefined) return
  const { mode, uid } = found
  const writers = findOtherWriters(found, found)
  if (writers === undefined) return
  const shown = `mode ${(mode & 0o7777).toString(8)}, owner ${uid === 0 ? 'root' : uid}`
  throw new DscError('CACHE_ROOT_INVALID', `${writers} may write to ${path} (${shown})`, { hint: hint() })
}

/**
 * The command that makes a cache its owner's, or the service's if root made it for a group. Copies stay where they are:
 * nothing is downloaded again. Only a cache is handed over, or
 * an empty folder, as earlier packages made one: in /tmp, /scratch or a pod's volume lie others' files, too.
 */
function hintFor(root: string): string {
  const { mode = 0, uid = 0 } = look(root) ?? {}
  if (mode & STICKY || !(existsSync(identityFile(root)) || isEmpty(root)))
    return `set cache.root to a folder of your own in it, such as ${join(root, 'dsc')}`
  const owner = uid === 0 ? 'dsc:dsc' : String(uid)
  return `sudo chown -R ${owner} ${root} && sudo chmod -R go-w ${root}; everybody else asks dsc agent`
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0
  } catch {
    return false
  }
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // opening it fails with the reason
  }
}
