/**
 * A file name or path as a string with one character per byte (latin1), because names are bytes and need not be UTF-8.
 * Such strings compare like their bytes.
 */
export type BytePath = string

/** The path in the form for the file system. */
export function toBytes(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1')
}

/** A path from the bytes of the file system. */
export function fromBytes(bytes: Uint8Array): BytePath {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

/** The path for people; bytes that are not UTF-8 show as U+FFFD. */
export function toText(path: BytePath): string {
  return toBytes(path).toString()
}

/** A path from a user's text. */
export function fromText(text: string): BytePath {
  return Buffer.from(text).toString('latin1')
}

/** Whether the file system takes the path for the same bytes in its form as a string. */
export function isAscii(path: BytePath): boolean {
  return !/[\x80-\xff]/.test(path)
}
