import { syncFileSystem } from '../../platform/sync-file-system.js'

/** Unflushed data that is worth a flush, in bytes. A flush starts a process: some 10 ms and 1,400 page faults. */
const FLUSH_BYTES = 256 * 1024 * 1024
/** Cost of a file on disk besides its bytes, in bytes of equal cost. */
const FILE_BYTES = 16 * 1024

/** Lets the disk write while the network is still receiving, so that little is left to wait for at the end. */
interface EarlyFlush {
  /** Called with what was written and may not be on the disk yet. */
  readonly note: (bytes: number, files: number) => void
  /** Resolves when no flush is under way. False: one failed, and its data must be synced file by file. */
  readonly finish: () => Promise<boolean>
}

/** Flushes the file system of `directory` each time enough has been written, one flush at a time. */
export function startEarlyFlush(
  directory: string,
  flushFileSystem: (directory: string) => Promise<boolean> = syncFileSystem,
): EarlyFlush {
  let waitingBytes = 0
  let running: Promise<void> | undefined
  let isSound = true
  const flush = async () => {
    waitingBytes = 0
    if (!(await flushFileSystem(directory))) isSound = false
    running = undefined
  }
  return {
    note(bytes, files) {
      waitingBytes += bytes + files * FILE_BYTES
      if (waitingBytes >= FLUSH_BYTES && isSound) running ??= flush()
    },
    async finish() {
      await running
      return isSound
    },
  }
}
