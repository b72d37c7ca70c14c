import { dirname } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { readFileSystemKind } from '../../platform/file-system-kind.js'
import { makeFolder } from '../../platform/shared-folder.js'

/**
 * Refuses a SQLite record on a file system that other machines may mount too: WAL needs shared memory and working
 * locks. NFS, Lustre and the like corrupt it silently.
 */
export async function requireLocalFileSystem(recordPath: string): Promise<void> {
  const directory = dirname(recordPath)
  try {
    makeFolder(directory)
  } catch (error) {
    throw new DscError(
      'RECORD_UNAVAILABLE',
      `cannot make ${directory} for the record (${(error as NodeJS.ErrnoException).code})`,
      { hint: 'set `record:` in dsc.yaml to a file in a folder you may write', cause: error },
    )
  }
  const kind = await readFileSystemKind(directory)
  if (!kind.isNetwork) return
  throw new DscError(
    'RECORD_ON_NETWORK_FS',
    `the record ${recordPath} lies on ${kind.name}, a network file system, where SQLite is not safe`,
    { hint: 'set `record:` to a local disk, or to postgres://… for a whole cluster' },
  )
}
