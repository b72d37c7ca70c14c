import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { DscError } from '../failure/dsc-error.js'

const STREAMS = { stdout: 1, stderr: 2 } as const

/** Whether people read the stream at a terminal. */
export function isTerminal(stream: keyof typeof STREAMS): boolean {
  return isatty(STREAMS[stream])
}

/**
 * Writes all of `text` before it returns. Node's own streams cost a short command several milliseconds to set up,
 * and lose what is still buffered when a process ends. A reader that went away (`dsc history | head`) is no error.
 */
export function writeAll(stream: keyof typeof STREAMS, text: string): void {
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STREAMS[stream], rest))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // What cannot be said must not undo what was done.
      if (code === 'EPIPE' || (stream === 'stderr' && code !== 'EAGAIN')) return
      if (code === 'ENOSPC' || code === 'EDQUOT')
        throw new DscError('DISK_FULL', `cannot write to ${stream} (${code})`, { cause: error })
      if (code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1) // a full pipe that does not block: 1 ms
    }
  }
}
