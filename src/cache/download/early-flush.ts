import { syncFileSystem } from '../../platform/sync-file-system.js'

/** Data that is worth a flush of its own, bytes. */
const FLUSH_BYTES = 64 * 1024 * 1024
/** What a file costs the disk beside its bytes, in bytes that cost as much. */
const FILE_BYTES = 16 * 1024

/** Has the disk write while the network still brings more, so that little is left to wait for when all is there. */
interface EarlyFlush {
  /** Called with what is written but not known to be on the disk. */
  readonly note: (bytes: number, files: number) => void
  /** Resolves when no flush is under way; false: one failed, and what it had to write must be synced file by file. */
  readonly finish: () => Promise<boolean>
}

/** Flushes the file system of `directory` each time that enough has been written, one flush at a time. */
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
