import { stat } from 'node:fs/promises'
import { DscError } from '../../failure/dsc-error.js'
import type { RecordStore } from '../../records/contract/record-store.js'

/** A record that may go away and come back while a command looks at it for hours. */
interface RecordSource {
  /** The open record; opens it anew after `discard` or when its file was replaced. Rejects while it is gone. */
  current(): Promise<RecordStore>
  /** Closes the record: what it said last was a failure. */
  discard(): Promise<void>
}

/**
 * `filePath`: the file of a record in SQLite. An open database goes on reading a file that was deleted or
 * replaced, and opening a missing one would make an empty record: both are looked at first.
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
      throw new DscError('RECORD_UNAVAILABLE', `gone: the record ${filePath}`, {
        hint: 'dsc doctor',
      })
    }
    if (open && open.inode !== inode) await discard()
    if (!open) {
      const record = await openRecord()
      open = { record, inode: filePath === undefined ? undefined : await findInode(filePath) }
      isSeen = true
    }
    return open.record
  }
  // Two who ask at once must not open two.
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
