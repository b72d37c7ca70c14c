import { close, closeSync, constants, open, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { DiskPace } from './disk-pace.js'

const elsewhere = { open: promisify(open), read: promisify(read), close: promisify(close) }
/** Opens a pipe at once, too. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK
/** Of all files that this process reads so. */
const pace = new DiskPace(() => performance.now())

/**
 * More than this is always read by another thread, which copies while this one sends, bytes. To ask one for 100 KiB
 * takes 0.1 ms, to copy them 0.02.
 */
const MAX_HERE_BYTES = 256 * 1024

/** A file that is opened, and read in small pieces, on this thread as long as that takes no waiting for a disk. */
export class QuickFile {
  readonly descriptor: number

  private constructor(descriptor: number) {
    this.descriptor = descriptor
  }

  /** Opens it for reading, at once also where somebody put a pipe. Rejects with what the system says. */
  static async open(path: string): Promise<QuickFile> {
    const descriptor = pace.run(
      () => openSync(path, FLAGS),
      () => elsewhere.open(path, FLAGS),
    )
    return new QuickFile(typeof descriptor === 'number' ? descriptor : await descriptor)
  }

  /** As `open`, within this turn; undefined while disks make this thread wait. Throws what the system says. */
  static openHere(path: string): QuickFile | undefined {
    if (!pace.isHere) return undefined
    return new QuickFile(pace.runHere(() => openSync(path, FLAGS)))
  }

  /** Reads into `buffer` what the file has from `offset` on, as much as there is room for. Returns the bytes read. */
  read(buffer: Buffer, offset: number): number | Promise<number> {
    const { descriptor } = this
    const readElsewhere = async () =>
      (await elsewhere.read(descriptor, buffer, 0, buffer.length, offset)).bytesRead
    if (buffer.length > MAX_HERE_BYTES) return readElsewhere()
    return pace.run(() => readSync(descriptor, buffer, 0, buffer.length, offset), readElsewhere)
  }

  /** As `read`, within this turn. */
  readHere(buffer: Buffer, offset: number): number {
    return pace.runHere(() => readSync(this.descriptor, buffer, 0, buffer.length, offset))
  }

  /** As `close`, within this turn. */
  closeHere(): void {
    closeSync(this.descriptor)
  }

  close(): void | Promise<void> {
    const { descriptor } = this
    return pace.run(
      () => closeSync(descriptor),
      () => elsewhere.close(descriptor),
    )
  }
}
