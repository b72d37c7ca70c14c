import { stat } from 'node:fs/promises'
import { DscError } from '../../failure/dsc-error.js'
import type { RecordStore } from '../../records/contract/record-store.js'

/** A record that can go away and come back while a command watches it for hours. */
interface RecordSource {
  /** The open record; reopens it after `discard` or when its file was replaced. Rejects while it is gone. */
  current(): Promise<RecordStore>
  /** Closes the record, because its last answer was a failure. */
  discard(): Promise<void>
}

/**
 * `filePath`: the file of a SQLite record. An open database keeps reading a deleted or replaced file, and opening a
 * missing one would create an empty record: check for both first.
 */
export function createRecordSource(
  openRecord: () => Promise<RecordStore>,
  filePath: string | undefined,
): RecordSource {
  let open: { readonly record: RecordStore; readonly inode: number | undefined } | undefined
  let isSeen = false
  const discard = async () => {
    const closing = open
    open = undefined
    await closing?.record.close()
  }
  const find = async () => {
    const inode = filePath === undefined ? undefined : await findInode(filePath)
    if (filePath !== undefined && inode === undefined && isSeen) {
      throw new DscError('RECORD_UNAVAILABLE', `gone: the record ${filePath}`, { hint: 'dsc doctor' })
    }
    if (open && open.inode !== inode) await discard()
    if (!open) {
      const record = await openRecord()
      open = { record, inode: filePath === undefined ? undefined : await findInode(filePath) }
      isSeen = true
    }
    return open.record
  }
  // Two concurrent callers must not open two.
  let finding: Promise<RecordStore> | undefined
  return {
    current() {
      finding ??= find().finally(() => {
        finding = undefined
      })
      return finding
    },
    discard,
  }
}

async function findInode(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino
  } catch {
    return undefined
  }
}
