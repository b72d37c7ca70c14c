import { fstatSync, writeSync } from 'node:fs'
import { DscError } from '../failure/dsc-error.js'

const STREAMS = { stdout: 1, stderr: 2 } as const
/** Maximum size of one write, UTF-16 units: avoids holding all bytes of a long text in memory beside it. */
const PIECE_UNITS = 16_384

/** Whether the stream is a terminal. */
export function isTerminal(stream: keyof typeof STREAMS): boolean {
  const descriptor = STREAMS[stream]
  try {
    if (!fstatSync(descriptor).isCharacterDevice()) return false
  } catch {
    return false // closed
  }
  // Loaded only here: with sockets and streams it costs a short command 6 ms, even in scripts.
  return process.getBuiltinModule('node:tty').isatty(descriptor)
}

/**
 * Writes all of `text` before it returns. Node's own streams cost a short command several milliseconds to set up, and
 * lose buffered text when a process ends. A closed reader (`dsc history | head`) is no error.
 */
export function writeAll(stream: keyof typeof STREAMS, text: string): void {
  for (let start = 0; start < text.length; ) {
    const end = isHighSurrogate(text.charCodeAt(start + PIECE_UNITS - 1))
      ? start + PIECE_UNITS - 1
      : start + PIECE_UNITS
    // Not TextEncoder: with the modules that its first use loads it costs a short command 3 ms.
    if (!writeBytes(stream, Buffer.from(text.slice(start, end)))) return
    start = end
  }
}

/** Whether a UTF-16 unit is the first half of a surrogate pair. */
function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** False: the stream has no reader. */
function writeBytes(stream: keyof typeof STREAMS, bytes: Uint8Array): boolean {
  let rest = bytes
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STREAMS[stream], rest))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // A failure to print must not undo the work.
      if (code === 'EPIPE' || (stream === 'stderr' && code !== 'EAGAIN')) return false
      if (code === 'ENOSPC' || code === 'EDQUOT')
        throw new DscError('DISK_FULL', `cannot write to ${stream} (${code})`, { cause: error })
      if (code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1) // a full non-blocking pipe: retry after 1 ms
    }
  }
  return true
}
