import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { isRefused } from '../../platform/disk-failure.js'
import { createUniqueId } from '../../platform/unique-id.js'

/**
 * Replaces the executable at `path` by `content`, with its mode and group, if `approve` agrees to the candidate, which
 * lies beside it. Whenever this process ends, the old one is at `path` or the new one, whole. What an earlier update
 * left beside it is removed first; should that update still run, its rename finds nothing, and fails.
 */
export async function replaceExecutable(
  path: string,
  content: Uint8Array,
  approve: (candidate: string) => Promise<boolean>,
): Promise<boolean> {
  const { uid, gid, mode } = statSync(path)
  // As root, too: the folder of another user may change under our hands.
  if (uid !== process.geteuid?.())
    throw new DscError('UPDATE_REFUSED', `${path} belongs to the user ${uid}, who alone may update it`, {
      hint: uid === 0 ? 'run the same command with sudo' : `sudo -u '#${uid}' dsc self update …`,
    })
  const folder = dirname(path)
  const prefix = `.${basename(path)}.update-`
  const candidate = join(folder, prefix + createUniqueId())
  try {
    for (const name of readdirSync(folder))
      if (name.startsWith(prefix)) rmSync(join(folder, name), { force: true })
    const file = openSync(candidate, 'wx', 0o700)
    try {
      writeFileSync(file, content)
      fchownSync(file, uid, gid)
      fchmodSync(file, mode & 0o7777) // after the owner: that takes bits away
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (!(await approve(candidate))) return false
    renameSync(candidate, path)
    sync(folder)
    return true
  } catch (error) {
    if (!isRefused(error)) throw error
    throw new DscError('UPDATE_REFUSED', `${folder}: ${(error as Error).message}`, {
      cause: error,
      hint: 'run it as a user who may write there (sudo), where the file system is writable',
    })
  } finally {
    rmSync(candidate, { force: true })
  }
}

function sync(folder: string): void {
  const descriptor = openSync(folder, 'r')
  using _ = atEndNow(() => closeSync(descriptor))
  fsyncSync(descriptor)
}
